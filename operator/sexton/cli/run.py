"""`sexton run`: the operator."""

import asyncio
import gc
import sys
from datetime import timedelta
from typing import Annotated

import typer

from sexton.api.schedule import ATTEMPTS_LIMIT
from sexton.cli.logs import LogFormat, configure_logging

Namespaces = Annotated[
    list[str],
    typer.Option(
        "--namespace",
        "-n",
        envvar="SEXTON_NAMESPACES",
        help="Look after this namespace only (may be repeated).",
    ),
]
AllNamespaces = Annotated[
    bool,
    typer.Option(
        "--all-namespaces",
        "-A",
        envvar="SEXTON_ALL_NAMESPACES",
        help="Look after all namespaces (the default).",
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        envvar="KUBECONFIG", help="How to reach the API server; inside a pod the service account will do."
    ),
]
Workers = Annotated[
    int, typer.Option(envvar="SEXTON_WORKERS", min=1, max=1000, help="Schedules worked on at once.")
]
Format = Annotated[LogFormat, typer.Option(envvar="SEXTON_LOG_FORMAT", help="How log lines are written.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", envvar="SEXTON_VERBOSE", help="Log more.")]
Health = Annotated[
    str | None,
    typer.Option(envvar="SEXTON_HEALTH_ADDRESS", help="Serve /healthz and /readyz at HOST:PORT."),
]
Timeout = Annotated[
    float,
    typer.Option(
        envvar="SEXTON_REQUEST_TIMEOUT", min=1.0, max=60.0, help="Seconds after which a request is given up."
    ),
]
NameKept = Annotated[
    float,
    typer.Option(
        envvar="SEXTON_NAME_KEPT_SECONDS",
        min=0.0,
        help="Seconds for which an ended Job is kept at least, so that a late second operator finds its name taken.",
    ),
]
MaxAttempts = Annotated[
    int,
    typer.Option(
        envvar="SEXTON_MAX_ATTEMPTS",
        min=1,
        max=ATTEMPTS_LIMIT,
        help="Attempts in all, where a Schedule does not say otherwise.",
    ),
]
InitialDelay = Annotated[
    float,
    typer.Option(
        envvar="SEXTON_INITIAL_DELAY_SECONDS",
        min=0.001,
        max=86_400,
        help="Seconds from the first attempt's end to the second, where a Schedule does not say otherwise.",
    ),
]
MaxDelay = Annotated[
    float,
    typer.Option(
        envvar="SEXTON_MAX_DELAY_SECONDS",
        min=0.001,
        max=86_400,
        help="The longest delay between two attempts in seconds, where a Schedule does not say otherwise.",
    ),
]
MaxCatchUpPerTick = Annotated[
    int,
    typer.Option(
        envvar="SEXTON_MAX_CATCH_UP_PER_TICK",
        min=1,
        help="Missed runs that may be started late within a tick, all Schedules together.",
    ),
]
Tick = Annotated[
    float, typer.Option(envvar="SEXTON_TICK_SECONDS", min=0.1, help="Seconds that a tick is long.")
]
QuotaPatience = Annotated[
    float,
    typer.Option(
        envvar="SEXTON_QUOTA_PATIENCE_SECONDS",
        min=0.0,
        help="Seconds for which a run waits for room in a quota, where a Schedule has no startingDeadlineSeconds.",
    ),
]
ContainerOutput = Annotated[
    bool,
    typer.Option(
        "--container-output/--no-container-output",
        envvar="SEXTON_CONTAINER_OUTPUT",
        help="Tell in records and events what a container said when it failed (its termination message).",
    ),
]
MaxRequestsPerSchedule = Annotated[
    int,
    typer.Option(
        envvar="SEXTON_MAX_REQUESTS_PER_SCHEDULE",
        min=1,
        help="Requests for one Schedule that may wait to be answered; the newest that come on top are refused.",
    ),
]
MaxRequestsPerNamespace = Annotated[
    int,
    typer.Option(
        envvar="SEXTON_MAX_REQUESTS_PER_NAMESPACE",
        min=1,
        help="Requests in one namespace that may wait to be answered.",
    ),
]
Relist = Annotated[
    float,
    typer.Option(
        envvar="SEXTON_RELIST_SECONDS", min=1.0, help="Seconds between two full lists of what is watched."
    ),
]

YOUNG_OBJECTS = 10_000
OLDER_GENERATIONS = 20
"""How many new objects there are before they are searched for garbage, and how many such searches before an older
generation is. Hardly any of what we make is garbage that only a search finds; with Python's own numbers (700 and 10),
searching is a tenth to a quarter of the work of reading ten thousand Schedules."""


def run(  # noqa: PLR0913, PLR0917 - one parameter an option, which Typer passes by name
    namespace: Namespaces = [],  # noqa: B006 - Typer's way; nobody changes it
    all_namespaces: AllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    workers: Workers = 64,
    log_format: Format = LogFormat.TEXT,
    verbose: Verbose = False,
    health_address: Health = None,
    request_timeout: Timeout = 10.0,
    name_kept: NameKept = 600.0,
    relist: Relist = 300.0,
    max_attempts: MaxAttempts = 3,
    initial_delay: InitialDelay = 1.0,
    max_delay: MaxDelay = 3600.0,
    max_catch_up_per_tick: MaxCatchUpPerTick = 5,
    tick: Tick = 10.0,
    quota_patience: QuotaPatience = 900.0,
    max_requests_per_schedule: MaxRequestsPerSchedule = 1000,
    max_requests_per_namespace: MaxRequestsPerNamespace = 5000,
    container_output: ContainerOutput = True,
) -> None:
    """Run the operator: start the Jobs of Schedules on time, and keep the account of them."""
    from sexton.control.operating import Options, PartDied, operate
    from sexton.deciding import Settings
    from sexton.kube.errors import NotConfigured
    from sexton.kube.watching import Pace

    if namespace and all_namespaces:
        raise typer.BadParameter("give either --namespace or --all-namespaces")
    configure_logging(log_format, verbose=verbose)
    gc.freeze()  # the modules stay for good
    gc.set_threshold(YOUNG_OBJECTS, OLDER_GENERATIONS, OLDER_GENERATIONS)
    options = Options(
        kubeconfig=kubeconfig,
        namespaces=tuple(name for part in namespace for name in part.split(",")),
        workers=workers,
        request_timeout_seconds=request_timeout,
        health_address=health_address,
        container_output=container_output,
        pace=Pace(relist=relist),
        settings=Settings(
            name_kept=timedelta(seconds=name_kept),
            max_attempts=max_attempts,
            initial_delay=timedelta(seconds=initial_delay),
            max_delay=timedelta(seconds=max_delay),
            max_catch_up_per_tick=max_catch_up_per_tick,
            tick=timedelta(seconds=tick),
            quota_patience=timedelta(seconds=quota_patience),
            max_requests_per_schedule=max_requests_per_schedule,
            max_requests_per_namespace=max_requests_per_namespace,
        ),
    )
    try:
        asyncio.run(operate(options))
    except NotConfigured as error:
        typer.echo(f"sexton: {error}", err=True)
        sys.exit(1)
    except PartDied as error:
        typer.echo(f"sexton: {error}: {error.__cause__}", err=True)
        sys.exit(1)
