"""Placement of a robot from the page: the way that is left, and driving by held keys and buttons."""

from __future__ import annotations

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.console.feed import Feed
from robot_runtime.console.supervision import Supervision
from robot_runtime.hal import Base, Velocity
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance

STEER = Velocity(0.25, 0.6)
"""Velocity of a full stick."""


class PageGuide(Guide):
    """Messages of a placement to the page, and to the guide that was there; the page drives where no program does.

    A command is repeated at each message, ten times a second, and expires after the Guard's 0.2 s: a released key, a
    lost page and a placement that ends stop the robot.

    Args:
        feed: feed of the page.
        other: the guide that was there.
        supervision: supervision by which the operator can end the placement.
        base: base that is driven.
    """

    def __init__(self, feed: Feed, other: Guide, supervision: Supervision, base: Base) -> None:
        super().__init__()
        self._feed, self._other, self._supervision, self._base = feed, other, supervision, base
        self._tolerance = Tolerance()
        self._moves = False

    @override
    def begin(self, goal: SE2, tolerance: Tolerance, drives: bool) -> None:
        self._tolerance = tolerance
        self._supervision.steers = not drives
        self._other.begin(goal, tolerance, drives)

    @override
    def show(self, now_ns: int, offset: Offset | None, note: str) -> None:
        self._supervision.check()
        if self._supervision.steers:
            self._steer()
        self._feed.show_offset(offset, note, self._tolerance)
        self._other.show(now_ns, offset, note)

    @override
    def done(self, offset: Offset) -> None:
        self._supervision.steers = False
        self._feed.show_offset(offset, "placed", self._tolerance)
        self._other.done(offset)

    def _steer(self) -> None:
        held = self._supervision.inbox.held
        if held is not None and held.stick is not None:
            linear, angular = held.stick
            self._base.command(Velocity(linear * STEER.linear_m_s, angular * STEER.angular_rad_s))
            self._moves = True
        elif self._moves:
            self._base.stop()
            self._moves = False
