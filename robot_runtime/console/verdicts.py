"""Verdicts and notes of people on the episodes of a run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Literal

from robot_runtime.campaign.messages import give_verdict
from robot_runtime.console.protocol import Message
from robot_runtime.errors import ConfigError


class RunVerdicts:
    """Verdicts from pages on the episodes of a run that have ended; for any thread.

    Episodes are numbered in the order in which they ended: the names of logs and runs may tell the policy.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[str, Path] = {}
        self._judges: dict[str, list[str]] = {}

    def offer(self, log: Path) -> str:
        """Add the log of an episode that has ended; return its name for pages."""
        with self._lock:
            name = f"episode {len(self._logs) + 1}"
            self._logs[name], self._judges[name] = log.resolve(), []
        return name

    @property
    def judges(self) -> dict[str, list[str]]:
        """Name of each episode -> pseudonyms of those who gave a verdict on it."""
        with self._lock:
            return {name: judges[:] for name, judges in self._judges.items()}

    def add(self, message: Message) -> str:
        """Write down a person's verdict; return what became of it.

        Raises:
            ConfigError: the episode is unknown, that person gave a verdict on it, or the message says nothing.
            RecordingError: it cannot be written.
        """
        log = self._logs.get(message.log)
        if log is None:
            raise ConfigError("that episode is not known here", "reload the page")
        with self._lock:
            judges = self._judges[message.log]
            if message.judgment is not None and message.by in judges:
                raise ConfigError(f"{message.by} has judged this episode", "let somebody else be the second judge")
            helped: Literal["help"] | None = "help" if message.helped else None
            give_verdict(log, message.by, message.visible, None, message.note, message.judgment, helped)
            if message.judgment is not None:
                judges.append(message.by)
        return f"{message.log}: {message.judgment or ('helped' if message.helped else 'noted')}"
