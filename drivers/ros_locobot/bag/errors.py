"""What can be wrong with a bag, or with what was driven in it."""

from __future__ import annotations

from robot_runtime.errors import RecordingError


class DamagedBag(RecordingError):
    """Not a bag, not closed by its recorder, or torn."""


class MissingTopic(RecordingError):
    """The bag lacks a topic that is needed."""


class NotOneClock(RecordingError):
    """Stamps of two topics, or of one, are not of one clock."""


class NoOverlap(RecordingError):
    """At no time does the bag have all that is needed."""


class NotAnAction(RecordingError):
    """Between two rests, the robot moved in a way that is no action of the task."""
