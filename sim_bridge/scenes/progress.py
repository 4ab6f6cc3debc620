"""Progress of work on a scene."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is to do."""


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""
