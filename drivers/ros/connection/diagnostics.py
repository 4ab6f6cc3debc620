"""The diagnoses of the robot's own drivers (``/diagnostics``), logged when their level changes."""

import logging
from dataclasses import dataclass
from enum import IntEnum

from drivers.ros.connection.received import Received

log = logging.getLogger(__name__)


REPORTED_OTHERWISE = "Wall Sensor"
"""Component of kobuki_node that says "Wall Hit!" at each contact; the base's state reports it already."""


class Level(IntEnum):
    """Levels of diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The newest diagnosis of a component, e.g. ``mobile_base_nodelet_manager: Battery``."""

    name: str
    level: Level
    text: str


class Diagnostics:
    """The newest diagnosis of every component. Written by the session's thread, read by any."""

    def __init__(self) -> None:
        self._newest: dict[str, Diagnosis] = {}

    def receive(self, received: Received) -> None:
        """Store a DiagnosticArray."""
        newest = dict(self._newest)
        for status in received.message.status:
            if status.name.endswith(REPORTED_OTHERWISE):
                continue
            level = Level(status.level if isinstance(status.level, int) else status.level[0])
            diagnosis = Diagnosis(status.name, level, status.message)
            before = newest.get(status.name)
            if level is not (Level.OK if before is None else before.level):
                write = log.info if level is Level.OK else log.warning
                write("%s: %s: %s", diagnosis.name, diagnosis.level.name.lower(), diagnosis.text)
            newest[status.name] = diagnosis
        self._newest = newest

    def troubles(self) -> tuple[Diagnosis, ...]:
        """Return the diagnoses that are not OK, the worst first."""
        troubles = [diagnosis for diagnosis in self._newest.values() if diagnosis.level is not Level.OK]
        return tuple(sorted(troubles, key=lambda diagnosis: -diagnosis.level))

    def clear(self) -> None:
        """Discard the diagnoses of a connection that has ended."""
        self._newest = {}
