"""Checked reading of ROS parameters by the standard library alone, for the Python of a robot's computer."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection
from typing import Any

from robot_runtime.errors import ConfigError


class ParameterGroup:
    """The parameters of a namespace. Every method raises ``ConfigError`` naming the parameter.

    Args:
        where: Name of the namespace.
        values: As the parameter server returns them: a mapping, or None where there are none.
    """

    def __init__(self, where: str, values: Any) -> None:
        self._where = where
        if not isinstance(values, (dict, type(None))):
            raise self._invalid(values, "a group of parameters is needed")
        self._values: dict[str, Any] = values or {}
        self._known: set[str] = set()

    def group(self, name: str) -> ParameterGroup:
        """Return the group ``name``, empty if it is not set."""
        return ParameterGroup(f"{self._where}/{name}", self._take(name))

    def choice(self, name: str, choices: Collection[str]) -> str:
        """Return one of ``choices``; it must be set."""
        value = self._take(name)
        if value not in choices:
            raise self._wrong(name, value, f"one of {', '.join(choices)} is needed")
        return str(value)

    def flag(self, name: str) -> bool:
        """Return true or false, false if it is not set."""
        value = self._take(name)
        if not isinstance(value, (bool, type(None))):
            raise self._wrong(name, value, "true or false is needed")
        return bool(value)

    def text(self, name: str, default: str) -> str:
        """Return a text."""
        value = self._take(name)
        if not isinstance(value, (str, type(None))):
            raise self._wrong(name, value, "a text is needed")
        return default if value is None else value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty if it is not set."""
        value = self._take(name)
        values = [] if value is None else value
        if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
            raise self._wrong(name, value, "a list of texts is needed")
        return tuple(values)

    def number(self, name: str, default: float, least: float = 0.0, most: float = math.inf) -> float:
        """Return a finite, positive number from ``least`` to ``most``."""
        value = self._take(name)
        if value is None:
            return default
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not (math.isfinite(value) and value > 0 and least <= value <= most):
            limits = f" from {least:g}" if least else ""
            limits += f" up to {most:g}" if math.isfinite(most) else ""
            raise self._wrong(name, value, f"a positive number{limits} is needed")
        return float(value)

    def finish(self, unused: Collection[str] = ()) -> None:
        """Refuse parameters that were not read, except the ``unused`` ones."""
        known = self._known.union(unused)
        for name in self._values:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                remedy = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(sorted(known))}"
                raise ConfigError(f"parameter {self._where}/{name}: there is no such parameter", remedy)

    def _take(self, name: str) -> Any:
        self._known.add(name)
        return self._values.get(name)

    def _wrong(self, name: str, value: Any, needed: str) -> ConfigError:
        return ParameterGroup(f"{self._where}/{name}", None)._invalid(value, needed)

    def _invalid(self, value: Any, needed: str) -> ConfigError:
        found = "it is not set" if value is None else f"found {value!r:.100}"
        return ConfigError(
            f"parameter {self._where}: {needed} ({found})", "set it in YAML, the launch file or by rosparam"
        )
