"""A metric of all tasks: how much longer the driven path is than the shortest one."""

from robot_runtime.metrics.measures import Measures, MetricDefinition, Run


def detour(run: Run) -> float | None:
    """Driven length over the shortest; None at the goal from the start."""
    return run.travelled_m / run.shortest_m if run.shortest_m else None


class Detours(Measures):
    """The metric, with its heading in tables."""

    defines = (MetricDefinition("detour", "detour", value=detour),)
