"""What every ``robot-runtime bench NAME`` prints and saves: one table, the same rows as JSON."""

from __future__ import annotations

import json
import os
import platform
import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table

from robot_runtime import __version__
from robot_runtime.common.clock import Stopwatch, utc_now_iso

if TYPE_CHECKING:
    from robot_runtime.env import Env


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Attributes:
        id: stable key in the JSON. label: for people.
        value: measured; None where it was not run, with the reason in ``note``.
        target, sense: what it must reach, and whether larger (``>=``) or smaller (``<=``) is better.
        rival: who was measured beside it in the same run; rival_value: their figure.
        low, high: spread or 95 % interval of ``value``, where it has one.
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
        """Whether the target is met; None where there is none or nothing was measured."""
        if self.target is None or self.value is None:
            return None
        return self.value >= self.target if self.sense == ">=" else self.value <= self.target


class StepTimer:
    """From its construction on, keeps how long an environment's own steps take.

    Attributes:
        wall_s, cpu_s: of each step; the latter of the whole process, for images are made by several threads.
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
    """Seconds that ``resource.RUSAGE_*`` has computed so far."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def print_rows(title: str, rows: Sequence[Row], console: Console) -> None:
    """The table, 80 columns wide: a line of figures per row, and below it what was measured, how, and the rival."""
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
    """The same rows as JSON, with what they were measured on."""
    document = {
        "bench": name,
        "robot_runtime": __version__,
        "created": utc_now_iso(),
        "machine": {"platform": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()},
        "rows": [asdict(row) | {"reached": row.reached} for row in rows],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
