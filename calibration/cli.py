"""Adds every calibration to ``robot-runtime calibrate``."""

from __future__ import annotations

import typer


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands to the groups of ``robot-runtime``."""
