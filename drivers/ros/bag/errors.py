"""Typed faults of bags and of the drives in them."""

from robot_runtime.errors import RecordingError


class DamagedBag(RecordingError):
    """Not a bag, not closed by its recorder, or damaged."""


class MissingTopic(RecordingError):
    """The bag lacks a topic that is needed."""


class NotOneClock(RecordingError):
    """Stamps of two topics, or of one, are not of the same clock."""


class NoOverlap(RecordingError):
    """The bag's topics do not overlap in time."""


class NotAnAction(RecordingError):
    """A motion between two stand-stills is not an action of the task."""
