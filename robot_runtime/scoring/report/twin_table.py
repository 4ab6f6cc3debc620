"""Terminal table of scores with simulation as evidence: per metric the intervals without and with it."""

from collections.abc import Sequence

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from robot_runtime.metrics.measures import definition
from robot_runtime.scoring.report.terminal_table import cell, interval_text
from robot_runtime.scoring.simulated_twins import TwinEstimate
from robot_runtime.scoring.statistics.control_variate import ControlVariate
from robot_runtime.scoring.statistics.intervals import CONFIDENCE


def table(estimates: Sequence[TwinEstimate]) -> Group:
    """A block per policy: rows without simulation and with it, and what they rest on."""
    return Group(*(part for one in estimates for part in (*_block(one), Text())), Text(_EXPLAINED, style="dim"))


_EXPLAINED = (
    f"{CONFIDENCE:.0%} intervals: for this number of episodes, looked at once; and valid after every episode. "
    "Simulation narrows them where it agrees with the robot, and does not move the mean where it is wrong."
)


def _block(estimate: TwinEstimate) -> list[Text | Padding]:
    rows = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    rows.add_column("metric", min_width=12, no_wrap=True)
    for heading in ("mean", f"{CONFIDENCE:.0%} interval", "at any time", "r", "weight"):
        rows.add_column(heading, justify="right", no_wrap=True)
    for name, found in estimate.metrics.items():
        for heading, mean, once, any_time, more in _lines(name, found):
            rows.add_row(heading or definition(name).title, mean, once, any_time, *more)
    first = next(iter(estimate.metrics.values()))
    heading = " · ".join(filter(None, (estimate.task, estimate.split, estimate.agent or "no agent")))
    basis = (
        f"{first.real} real episodes, {first.twins} of them simulated, {first.further} further simulated per real one"
    )
    warned = [] if first.further else [Text("too few further simulated starts: simulation is not used", style="yellow")]
    return [Text(heading, style="bold"), Text(basis), *warned, Padding(rows, (0, 0, 0, 2), expand=False)]


def _lines(name: str, found: ControlVariate) -> list[tuple[str, str, str, str, tuple[str, ...]]]:
    pairs = (
        ("", found.without, found.without_any_time, ()),
        (
            "  with simulation",
            found.adjusted,
            found.adjusted_any_time,
            (f"{found.correlation:.2f}", f"{found.weight:.2f}"),
        ),
    )
    return [
        (heading, cell(name, once.mean), interval_text(name, once), interval_text(name, always), more)
        for heading, once, always, more in pairs
    ]
