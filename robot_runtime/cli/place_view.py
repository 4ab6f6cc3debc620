"""Live picture in the terminal of a robot that is being placed: its start from above, and its distance from it."""

import math

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typing_extensions import Self, override

from robot_runtime.common.geometry import SE2
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance

COLUMNS, ROWS = 33, 13
ARROWS = "↑↖←↙↓↘→↗"
"""Arrows by eighths of a turn to the left of straight ahead, which is up."""


class LiveGuide(Guide):
    """A picture in the terminal that follows the robot, in place of lines. Use it in a ``with`` block."""

    def __init__(self, console: Console) -> None:
        super().__init__(self._note)
        self._live = Live(console=console, transient=True, refresh_per_second=8)
        self._tolerance = Tolerance()
        self._title = ""

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    @override
    def begin(self, goal: SE2, tolerance: Tolerance, drives: bool) -> None:
        self._tolerance = tolerance
        super().begin(goal, tolerance, drives)

    @override
    def show(self, now_ns: int, offset: Offset | None, note: str) -> None:
        self._live.update(picture(offset, note, self._tolerance))

    def _note(self, line: str) -> None:
        self._live.console.print(line, soft_wrap=True, markup=False)


def picture(offset: Offset | None, note: str, tolerance: Tolerance) -> Panel:
    """Picture for the operator: the robot in the center, facing up, and the direction to its start."""
    if offset is None:
        return Panel(Text(f"no pose of the robot: {note}", style="red"), title="start", expand=False)
    ahead, left = 100 * offset.ahead_m, 100 * offset.left_m
    turn_deg = math.degrees(offset.turn_rad)
    table = Table.grid(padding=(0, 2))
    near, turned = offset.distance_m <= tolerance.within_m, abs(offset.turn_rad) <= tolerance.within_rad
    table.add_row("off", _figure(f"{100 * offset.distance_m:.1f} cm", near), f"of {100 * tolerance.within_m:g} cm")
    table.add_row("turned", _figure(f"{abs(turn_deg):.1f}°", turned), f"of {tolerance.within_deg:g}°")
    table.add_row("push", f"{abs(ahead):.1f} cm", "ahead" if ahead >= 0 else "back")
    table.add_row("", f"{abs(left):.1f} cm", "left" if left >= 0 else "right")
    table.add_row("turn", f"{abs(turn_deg):.1f}°", "left" if turn_deg >= 0 else "right")
    beside = Table.grid(padding=(0, 3))
    beside.add_row(Text("\n".join(view(offset))), Group(table, Text(f"\n{note}", style="bold")))
    return Panel(beside, title="start", expand=False, border_style="green" if near and turned else "yellow")


def view(offset: Offset) -> list[str]:
    """The floor around the robot as text: ``R`` is the robot, facing up, and the arrow its start and heading.

    The picture extends to 20 cm, 1 m, 5 m or to the start, whichever is the first that contains the start.
    """
    away_m = max(abs(offset.ahead_m), abs(offset.left_m))
    reach_m = next((reach for reach in (0.2, 1.0, 5.0) if away_m <= reach), away_m)
    rows = [[" "] * COLUMNS for _ in range(ROWS)]
    middle_row, middle_column = ROWS // 2, COLUMNS // 2
    rows[middle_row][middle_column] = "R"
    row = middle_row - round(offset.ahead_m / reach_m * middle_row)
    column = middle_column - round(offset.left_m / reach_m * middle_column)
    rows[row][column] = ARROWS[round(offset.turn_rad / (math.pi / 4)) % 8]
    edge = f"{reach_m:g} m" if reach_m >= 1 else f"{100 * reach_m:g} cm"
    return ["".join(line) for line in rows] + [f"{'':{middle_column - len(edge) // 2}}← {edge} →"]


def _figure(text: str, good: bool) -> Text:
    return Text(text, style="bold green" if good else "bold yellow")
