"""Settings of a guard process, which it gets as its argument."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from urllib.parse import quote

from drivers.serial_base.wire import BaseWire
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.wheels import BaseInfo
from robot_runtime.safety.guard import GuardLimits

TEXT = "The emergency stop is engaged. It is released by the key r, or by: robot-runtime stop --release\n"


def memory_path(port: str) -> str:
    """Return the path of the file for the base at a port."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return str(folder / "robot-runtime" / "emergency-stops" / quote(port, safe=""))


class EStopMemory:
    """The emergency stop's memory across guard processes: a file that exists while it is engaged.

    Without it, whoever restarts the runtime after a crash would release a stop that somebody has engaged at the robot.

    Args:
        path: path of the file; empty remembers nothing.

    Attributes:
        engaged: whether the stop is engaged as far as is remembered.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self.engaged = self._path is not None and self._path.exists()

    def note(self, engaged: bool) -> None:
        """Remember a change. Raises ``DeviceFault`` if that is impossible."""
        if engaged is self.engaged:
            return
        self.engaged = engaged
        if self._path is None:
            return
        try:
            if engaged:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.write_text(TEXT, encoding="utf-8")
            else:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            raise DeviceFault(
                f"{self._path}: cannot be written: {error.strerror or error}; the emergency stop is "
                f"{'engaged' if engaged else 'released'}, but the next start will not know it",
                "make room on the disk, or let XDG_STATE_HOME name a folder that may be written",
            ) from error


@dataclass(frozen=True)
class GuardSettings:
    """Settings of a guard process.

    Attributes:
        wire: protocol of the base, ``module:class``.
        port: path of the serial device, or what else the wire's ``open`` takes.
        stop_buttons: bits of the base's buttons that engage the emergency stop.
        e_stop: whether the emergency stop is engaged from the beginning.
        lockstep: whether time is simulated: it passes only when the runtime says so.
        e_stop_file: path of the file that keeps the emergency stop for the next guard process; empty for no memory.
    """

    wire: str
    port: str
    limits: GuardLimits
    stop_buttons: int = 0
    e_stop: bool = False
    lockstep: bool = False
    e_stop_file: str = ""

    @classmethod
    def of(cls, wire: type[BaseWire], port: str, info: BaseInfo, stop_buttons: int = 0) -> GuardSettings:
        """Return the settings of a base: the limits of ``info``, and an emergency stop that is remembered."""
        path = f"{wire.__module__}:{wire.__qualname__}"
        return cls(path, port, GuardLimits.of(info), stop_buttons, e_stop_file=memory_path(port))

    @property
    def lock_file(self) -> str:
        """Path of the file that the owner of the base locks, beside the memory; empty if there is none."""
        return f"{self.e_stop_file}.lock" if self.e_stop_file else ""

    def make_wire(self) -> BaseWire:
        """Return a new wire of the base."""
        module, _, name = self.wire.partition(":")
        made: BaseWire = getattr(import_module(module), name)()
        return made

    def pack(self) -> str:
        """Return the settings as one argument."""
        return json.dumps(asdict(self))

    @classmethod
    def unpack(cls, text: str) -> GuardSettings:
        """Return the settings of :meth:`pack`."""
        fields = json.loads(text)
        return cls(**fields | {"limits": GuardLimits(**fields["limits"])})
