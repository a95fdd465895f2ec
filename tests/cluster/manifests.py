"""Schedules for tests, as plain dicts."""

from typing import Any

Object = dict[str, Any]


def schedule(
    name: str,
    expression: str = "* * * * *",
    *,
    namespace: str,
    image: str,
    command: str = "true",
    simulated: dict[str, str] | None = None,
    job: Object | None = None,
    **spec: Any,
) -> Object:
    """Return a Schedule whose Jobs run a shell command in one container.

    ``simulated`` is for simulated nodes: ``exit-code`` and ``run-for``.
    """
    annotations = {f"simulated.sexton.dev/{key}": value for key, value in (simulated or {}).items()}
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "work",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", command],
            }
        ],
    }
    return {
        "apiVersion": "sexton.dev/v1",
        "kind": "Schedule",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedule": expression,
            "jobTemplate": {
                "spec": {"template": {"metadata": {"annotations": annotations}, "spec": pod}, **(job or {})}
            },
            **spec,
        },
    }
