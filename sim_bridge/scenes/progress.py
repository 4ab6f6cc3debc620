"""How work on a scene says how far it has come."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is to do."""


def silent(stage: str, done: int, total: int) -> None:
    """For callers that do not want to know."""
