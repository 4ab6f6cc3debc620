"""Interface of every part of a robot: connect, use, close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType

from typing_extensions import Self


class Device(ABC):
    """A part that is connected, used and closed."""

    @abstractmethod
    def connect(self) -> None:
        """Open the device. Raises ``DeviceFault`` naming port or topic and remedy; then nothing is left half open."""

    @abstractmethod
    def close(self) -> None:
        """Release the device; safe in any state, twice, and after an error."""

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
