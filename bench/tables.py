"""The figures as tables on the terminal."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from bench.big import Big
from bench.bursts import Burst
from bench.idle import Idle
from bench.writes import Requests

WIDTH = 120
BUDGET_RATIO = 2.0
BUDGET_MORE_WRITES = 1.0
BUDGET_CPU_PERCENT = 1.0
BUDGET_RSS_MB = 250.0
CHART_LIMIT_MB = 512.0
BUDGET_COLD_START_SECONDS = 20.0


def show_bursts(bursts: list[Burst]) -> None:
    """Print when the Jobs of each burst came, beside the ceiling of the same run."""
    table = Table(
        title="Objects due in the same minute: seconds from the instant to the Job's ADDED event",
        caption=f"Budget: Sexton's p99 at 1,000 is at most {BUDGET_RATIO:.0f} x that of the bare POSTs (raw)",
    )
    table.add_column("n", justify="right")
    table.add_column("system")
    for heading in ("started", "p50", "p99", "max", "p99 / raw", "CPU s / 1,000", "RSS MiB", "load before"):
        table.add_column(heading, justify="right")
    ceilings = {burst.n: burst.p99_s for burst in bursts if burst.system == "raw"}
    for burst in bursts:
        late = "" if burst.started == burst.n else ">"
        lags = (f"{late}{burst.p50_s:.2f}", f"{late}{burst.p99_s:.2f}", f"{late}{burst.max_s:.2f}")
        ratio = f"{late}{burst.p99_s / ceilings[burst.n]:.1f}" if burst.n in ceilings else "-"
        cost = (_figure(burst.cpu_s_per_1000), _figure(burst.rss_mb))
        table.add_row(
            f"{burst.n:,}",
            burst.system,
            f"{burst.started:,}",
            *lags,
            ratio,
            *cost,
            _loads(burst.load["averages"]),
        )
    _print(table)


def show_requests(all_requests: Iterable[Requests]) -> None:
    """Print what each client sent for a completed fire."""
    sexton, rival = all_requests
    table = Table(
        title=f"API requests per completed fire, {sexton.fires} and {rival.fires} fires in a minute (audit log)",
        caption=f"Budget: at most {BUDGET_MORE_WRITES:.0f} write more than the built-in controller",
    )
    table.add_column("request")
    table.add_column("sexton", justify="right")
    table.add_column("cronjob", justify="right")
    for kind in sorted(sexton.by_kind | rival.by_kind):
        table.add_row(kind, *(_figure(each.by_kind.get(kind)) for each in (sexton, rival)))
    table.add_section()
    table.add_row("writes", f"{sexton.writes:.2f}", f"{rival.writes:.2f}", style="bold")
    table.add_row("reads", f"{sexton.reads:.2f}", f"{rival.reads:.2f}")
    table.add_row("CPU s / 1,000 fires", f"{sexton.cpu_s_per_1000:.2f}", f"{rival.cpu_s_per_1000:.2f}")
    table.add_row("load before", _loads(sexton.load["averages"]), "")
    _print(table)


def show_idle(idle: Idle) -> None:
    """Print what it costs to have nothing to do."""
    table = Table(
        title=f"{idle.schedules:,} idle Schedules with {idle.records:,} records and {idle.jobs:,} ended Jobs"
    )
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_column("budget", justify="right")
    table.add_row("CPU, % of a core over a minute", f"{idle.cpu_percent:.2f}", f"< {BUDGET_CPU_PERCENT:.0f}")
    table.add_row("resident memory, MiB", f"{idle.rss_mb:.0f}", f"< {BUDGET_RSS_MB:.0f}")
    table.add_row("the most so far, MiB", f"{idle.peak_mb:.0f}", "")
    cold = "cold start, s: from the start of the process to the Job of what is overdue"
    table.add_row(cold, f"{idle.cold_start_s:.1f}", f"< {BUDGET_COLD_START_SECONDS:.0f}")
    table.add_row("until it is ready, s", f"{idle.ready_s:.1f}", "")
    table.add_row("CPU seconds of the cold start", f"{idle.cold_start_cpu_s:.1f}", "")
    table.add_row("at rest before it was watched", "yes" if idle.settled else "no", "")
    table.add_row("load before", _loads(idle.load["averages"]), "")
    _print(table)


def show_big(found: list[Big]) -> None:
    """Print the memory that big Schedules take."""
    table = Table(
        title=f"{found[0].schedules} big Schedules that are suspended: resident memory of the operator, MiB",
        caption=f"The chart allows {CHART_LIMIT_MB:.0f}",
    )
    table.add_column("of")
    for heading in ("before", "created", "the most", "restarted", "the most", "load before"):
        table.add_column(heading, justify="right")
    for each in found:
        figures = (
            each.before_mb,
            each.after_creation_mb,
            each.peak_of_creation_mb,
            each.after_restart_mb,
            each.peak_of_restart_mb,
        )
        table.add_row(each.kind, *(f"{figure:.0f}" for figure in figures), _loads(each.load["averages"]))
    _print(table)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _loads(averages: list[float]) -> str:
    return " ".join(f"{average:.1f}" for average in averages)


def _print(table: Table) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print()
    console.print(table)
