"""Events between the steps: a localizer that lost the robot, a clock that went back, a pause."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """An event that matters for judging the episode.

    Attributes:
        stamp_ns: time of the event, Clock nanoseconds; of a late detection, time of the detection.
        source: origin of the event: a localizer's ``info.name``, ``env``.
        kind: one word for programs, in lower case with underscores. Localizers': ``lost``, ``regained``, ``no_fix``,
            ``fix``, ``frozen``, ``clock_went_back``, ``jump_rejected``, ``anchor_moved``, ``mirrored``, ``scale``.
            The environment's: ``paused``, ``resumed``. Motion's: ``motors_adapted``.
        detail: one sentence for people, with numbers and units.
    """

    stamp_ns: int
    source: str
    kind: str
    detail: str = ""
