"""Results of ``bench NAME``: rows, their table, and the same rows as JSON."""

from __future__ import annotations

import json as jsonlib
import os
import platform
import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from robot_runtime.common.clock import Stopwatch, utc_now_iso
from robot_runtime.common.version import VERSION

if TYPE_CHECKING:
    from robot_runtime.env import Env


JsonFile = Annotated[Path | None, typer.Option(help="Write the rows to this file.")]


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Attributes:
        id: stable key in the JSON.
        label: description of the figure.
        value: measured value; None if it was not run, with the reason in ``note``.
        unit: unit of ``value``.
        target: bound that ``value`` must reach; None for none.
        sense: whether larger (``>=``) or smaller (``<=``) values are better.
        rival: name of the software that was measured in the same run.
        rival_value: figure of the rival.
        low: lower end of the spread or 95 % interval of ``value``.
        high: upper end of that spread or interval.
        note: conditions of the measurement.
    """

    id: str
    label: str
    value: float | None
    unit: str
    target: float | None = None
    sense: Literal[">=", "<="] = ">="
    rival: str = ""
    rival_value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the target is met; None without a target or a value."""
        if self.target is None or self.value is None:
            return None
        return bool(self.value >= self.target if self.sense == ">=" else self.value <= self.target)  # not numpy's


class StepTimer:
    """Times of an environment's own steps, from the timer's construction on.

    Attributes:
        wall_s: seconds of each step.
        cpu_s: CPU seconds of the whole process in each step, because several threads render images.
    """

    def __init__(self, env: Env) -> None:
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []
        step = env.step

        def timed(*arguments: Any, **more: Any) -> Any:
            timer, before_s = Stopwatch(), cpu_s(resource.RUSAGE_SELF)
            observation = step(*arguments, **more)
            self.wall_s.append(timer.elapsed_s())
            self.cpu_s.append(cpu_s(resource.RUSAGE_SELF) - before_s)
            return observation

        env.step = timed  # type: ignore[method-assign]


def cpu_s(who: int) -> float:
    """CPU seconds that ``resource.RUSAGE_*`` has used so far."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def process_s(process: int) -> float:
    """CPU seconds that another process has used so far; on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(name: str, rows: Sequence[Row], json: Path | None, console: Console) -> None:
    """Print the rows of ``bench NAME``, and write them to a file if one is given."""
    print_rows(f"bench {name}", rows, console)
    if json is not None:
        write_rows(json, name, rows)
        console.print(f"rows: {json}", soft_wrap=True)


def print_rows(title: str, rows: Sequence[Row], console: Console) -> None:
    """Print a table of 80 columns, a line per row, and below it the label, note and rival of each row."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading, justify in (("row", "left"), ("value", "right"), ("unit", "left"), ("target", "right"), ("", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        mark = {True: "[green]reached[/]", False: "[red]missed[/]", None: ""}[row.reached]
        spread = "" if row.low is None else f" \\[{_number(row.low)}, {_number(row.high)}]"
        value = "not run" if row.value is None else _number(row.value) + spread
        target = "" if row.target is None else f"{row.sense} {_number(row.target)}"
        table.add_row(f"[bold]{row.id}[/]", value, row.unit, target, mark)
    console.print(table)
    for row in rows:
        rival = f"{row.rival}: {_number(row.rival_value)} {row.unit}".rstrip() if row.rival else ""
        console.print(f"[dim]{row.id}: {'; '.join(filter(None, (row.label, row.note, rival)))}[/]")


def write_rows(path: Path, name: str, rows: Sequence[Row]) -> None:
    """Write the rows as JSON, with the machine on which they were measured."""
    document = {
        "bench": name,
        "robot_runtime": VERSION,
        "created": utc_now_iso(),
        "machine": {"platform": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()},
        "rows": [asdict(row) | {"reached": row.reached} for row in rows],
    }
    path.write_text(jsonlib.dumps(document, indent=2) + "\n", encoding="utf-8")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
