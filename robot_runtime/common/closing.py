"""Base class of what is closed at the end of a ``with`` block."""

from abc import ABC, abstractmethod

from typing_extensions import Self


class Closing(ABC):
    """A context that returns itself and is closed at its end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Free what it holds."""
