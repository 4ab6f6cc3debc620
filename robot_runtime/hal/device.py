"""Interface of every part of a robot: connect, use, close."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from typing_extensions import Self

from robot_runtime.common.host_checks import Finding


class Device(ABC):
    """A part that is connected, used and closed."""

    @abstractmethod
    def connect(self) -> None:
        """Open the device. Raises ``DeviceFault`` naming port or topic and remedy; then nothing is left half open."""

    @abstractmethod
    def close(self) -> None:
        """Release the device; safe in any state, twice, and after an error."""

    def diagnose(self) -> Sequence[Finding]:
        """Condition of the connected device for ``robot-runtime doctor``: firmware, supply, temperature.

        Raises ``DeviceFault``.
        """
        return ()

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
