"""What happened beside the steps: a localizer that lost the robot, a clock that went back, a pause."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Something that somebody who judges the episode should know of.

    Attributes:
        stamp_ns: when it happened, Clock nanoseconds; of a late detection, when it was detected.
        source: who noticed: a localizer's ``info.name``, ``env``.
        kind: one word for programs, in lower case with underscores. Localizers': ``lost``, ``regained``, ``no_fix``,
            ``fix``, ``frozen``, ``clock_went_back``, ``jump_rejected``, ``anchor_moved``, ``mirrored``, ``scale``.
            The environment's: ``paused``, ``resumed``.
        detail: one sentence for people, with numbers and units.
    """

    stamp_ns: int
    source: str
    kind: str
    detail: str = ""
