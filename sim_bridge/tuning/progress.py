"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

LIMIT_S = 1800.0
"""Seconds that one item may take: a learned policy, drawn by software, over the steps of the longest tasks."""

Step = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much."""


def silent(what: str, done: int, total: int) -> None:
    """Told, and says nothing."""
