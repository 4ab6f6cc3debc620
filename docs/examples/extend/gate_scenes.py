"""The scenes of the package."""

from pathlib import Path


def gate_hall() -> Path:
    """The folder of the hall with a gate."""
    return Path(__file__).parent / "gate_hall"
