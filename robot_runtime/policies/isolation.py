"""Settings of an agent that runs in a process of its own."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from robot_runtime.errors import ConfigError

TIME_LIMIT_S = 30.0
"""Default time limit (s) for one answer: a first decision may compile code."""

MEMORY_SHARE = 0.75
"""Default memory limit of an agent, of the computer's: the rest is for the runtime and the robot's drivers."""

_LEAST_MEMORY_BYTES = 1 << 28


@dataclass(frozen=True)
class Isolation:
    """Settings of an agent's process.

    Attributes:
        python: its interpreter, or a virtual environment's folder; None for the runtime's own.
        time_limit_s: time limit for each of its answers.
        memory_bytes: private memory that it can have, and each of its children; None for ``MEMORY_SHARE`` of the
            computer's.
    """

    python: Path | None = None
    time_limit_s: float = TIME_LIMIT_S
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.time_limit_s <= 3600:
            raise ConfigError(f"an agent's time limit is {self.time_limit_s} s", "choose more than 0 and at most 3600")
        if self.memory_bytes is not None and self.memory_bytes < _LEAST_MEMORY_BYTES:
            raise ConfigError(
                f"an agent's memory is {self.memory_bytes} bytes", f"choose at least {_LEAST_MEMORY_BYTES}"
            )

    @property
    def interpreter(self) -> str:
        """The program to run. Raises ``ConfigError`` if there is none."""
        if self.python is None:
            return sys.executable
        candidates = (self.python, self.python / "bin" / "python")
        for candidate in candidates:
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return str(candidate.absolute())
        raise ConfigError(
            f"{self.python}: no Python interpreter", "name one, or a virtual environment's folder: venv/bin/python"
        )


_REMEDIES = {
    "ModuleNotFoundError": "install it where the agent runs, or name the interpreter that has it with --agent-python",
    "MemoryError": f"make it smaller: it can have {MEMORY_SHARE:.0%} of the computer's memory",
    "CUDA": "use the CPU: torch.load(file, map_location='cpu'), and neither .cuda() nor .to('cuda'); or a GPU",
}


def remedy_for(raised: str) -> str:
    """Remedy for what an agent raised, ``KeyError: 'rgb'``."""
    remedies = (remedy for sign, remedy in _REMEDIES.items() if sign in raised)
    return next(remedies, "correct the agent; --debug shows the traceback")
