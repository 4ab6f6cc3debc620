"""Faults on schedule: what emulated and fake devices do wrong, each during a window of their own clock."""

import inspect
import math
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from typing_extensions import dataclass_transform

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.config import Strict


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Window(Strict):
    """Active while ``from_s`` <= t < ``to_s``, seconds of a clock that starts at 0.

    A fault derives from it: a frozen dataclass, which a file names by its field ``kind``, the class's name in
    snake case.
    """

    from_s: float = 0.0
    to_s: float = math.inf

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        cls.__annotations__ = {"kind": Literal[name]} | inspect.get_annotations(cls)
        cls.kind = name  # type: ignore[attr-defined]
        dataclass(frozen=True)(cls)

    def active(self, now_ns: int) -> bool:
        """Whether it is happening now."""
        return seconds_to_ns(self.from_s) <= now_ns and (math.isinf(self.to_s) or now_ns < seconds_to_ns(self.to_s))


W = TypeVar("W", bound=Window)


@dataclass(frozen=True)
class Script:
    """All scheduled faults of a device."""

    faults: tuple[Window, ...] = ()

    def active(self, kind: type[W], now_ns: int) -> tuple[W, ...]:
        """The faults of a kind that are happening now."""
        if not self.faults:
            return ()
        return tuple(fault for fault in self.faults if isinstance(fault, kind) and fault.active(now_ns))
