"""Axis-aligned rectangles and the names of their sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["south", "north", "west", "east"]
SIDES: tuple[Side, ...] = ("south", "north", "west", "east")


@dataclass(frozen=True)
class Rect:
    """An axis-aligned rectangle."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def depth(self) -> float:
        return self.y1 - self.y0

    @property
    def center(self) -> tuple[float, float]:
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2

    def grown(self, margin: float) -> Rect:
        """Larger by ``margin`` on every side."""
        return Rect(self.x0 - margin, self.y0 - margin, self.x1 + margin, self.y1 + margin)

    def overlaps(self, other: Rect) -> bool:
        """Whether the interiors meet (touching within 1 mm does not count)."""
        return (
            min(self.x1, other.x1) - max(self.x0, other.x0) > 1e-3
            and min(self.y1, other.y1) - max(self.y0, other.y0) > 1e-3
        )

    def contains(self, other: Rect) -> bool:
        """Whether ``other`` lies inside (0.1 mm tolerance)."""
        e = 1e-4
        inside_x = self.x0 - e <= other.x0 and other.x1 <= self.x1 + e
        return inside_x and self.y0 - e <= other.y0 and other.y1 <= self.y1 + e

    def along(self, side: Side) -> tuple[float, float]:
        """The interval that a side covers along its own direction."""
        return (self.x0, self.x1) if side in ("south", "north") else (self.y0, self.y1)

    def strip(self, side: Side, start: float, end: float, depth: float) -> Rect:
        """The part inside, next to ``side``, between ``start`` and ``end`` along it; negative depth lies outside."""
        a, b = (0.0, depth) if depth >= 0 else (depth, 0.0)
        if side == "south":
            return Rect(start, self.y0 + a, end, self.y0 + b)
        if side == "north":
            return Rect(start, self.y1 - b, end, self.y1 - a)
        if side == "west":
            return Rect(self.x0 + a, start, self.x0 + b, end)
        return Rect(self.x1 - b, start, self.x1 - a, end)
