"""What the robot's own drivers say of themselves on /diagnostics: remembered, and told when it gets worse."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

log = logging.getLogger(__name__)


class Level(IntEnum):
    """diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The newest word of one part, e.g. ``mobile_base_nodelet_manager: Battery``."""

    name: str
    level: Level
    text: str


class Diagnostics:
    """The newest diagnosis of every part. Fed by rospy's thread, read by any."""

    def __init__(self) -> None:
        self._newest: dict[str, Diagnosis] = {}

    def receive(self, message: Any) -> None:
        """Take in a DiagnosticArray."""
        newest = dict(self._newest)
        for status in message.status:
            level = Level(status.level if isinstance(status.level, int) else status.level[0])
            diagnosis = Diagnosis(status.name, level, status.message)
            before = newest.get(status.name)
            if level is not (Level.OK if before is None else before.level):
                tell = log.info if level is Level.OK else log.warning
                tell("%s: %s: %s", diagnosis.name, diagnosis.level.name.lower(), diagnosis.text)
            newest[status.name] = diagnosis
        self._newest = newest

    def troubles(self) -> tuple[Diagnosis, ...]:
        """What is not well now, the worst first."""
        troubles = [diagnosis for diagnosis in self._newest.values() if diagnosis.level is not Level.OK]
        return tuple(sorted(troubles, key=lambda diagnosis: -diagnosis.level))

    def forget(self) -> None:
        """The connection ended."""
        self._newest = {}
