"""A training framework's configuration in a checkpoint: a tree of plain values with access by path."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from robot_runtime.errors import CheckpointError
from robot_runtime.policies.convert.pickles import Inert

T = TypeVar("T")

MAX_VALUES = 1 << 18
MAX_DEPTH = 64

_REFERENCE = re.compile(r"\$\{([A-Za-z0-9_.]+)\}")


class Settings:
    """A configuration, of yacs (habitat to 0.2.2), OmegaConf (habitat from 0.2.3) or plain dictionaries.

    Keys are in lower case; yacs has upper case.

    Raises:
        CheckpointError: it is too large or too deep.
    """

    def __init__(self, path: Path, data: Any) -> None:
        self._path = path
        self._left = MAX_VALUES
        tree = self._plain(data, 0)
        self.tree: dict[str, Any] = tree if isinstance(tree, dict) else {}

    def __bool__(self) -> bool:
        return bool(self.tree)

    def find(self, *paths: str) -> Any:
        """The value at the first path that exists, else None. References ``${...}`` are resolved."""
        for path in paths:
            found: Any = self.tree
            for part in path.split("."):
                found = found.get(part) if isinstance(found, dict) else None
            reference = _REFERENCE.fullmatch(found) if isinstance(found, str) else None
            if reference is not None and reference.group(1) != path:
                found = self._at(reference.group(1))
            if found is not None:
                return found
        return None

    def get(self, kind: type[T], *paths: str) -> T | None:
        """:func:`find` of a type; an integer counts as a float.

        Raises:
            CheckpointError: it is of another type; names the path.
        """
        found = self.find(*paths)
        if kind is float and type(found) is int:
            found = float(found)
        if found is None or (isinstance(found, kind) and (kind is not int or type(found) is not bool)):
            return found
        raise CheckpointError(
            f"{self._path}: the configuration's {paths[0]} is {found!r}, not a {kind.__name__}",
            "correct the checkpoint's configuration, or convert its state_dict alone with --task",
        )

    def section(self, *paths: str) -> Mapping[str, Any]:
        """:func:`find` of a section; empty if there is none."""
        return self.get(dict, *paths) or {}

    def _at(self, path: str) -> Any:
        found: Any = self.tree
        for part in path.lower().split("."):
            found = found.get(part) if isinstance(found, dict) else None
        return None if isinstance(found, str) and _REFERENCE.fullmatch(found) else found

    def _plain(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise CheckpointError(
                f"{self._path}: its configuration is too large", "convert its state_dict alone with --task"
            )
        if isinstance(value, Inert):
            content = value.attribute("_content")
            if content is not None:  # OmegaConf's containers
                return self._plain(content, depth + 1)
            if value.items:  # yacs
                return self._plain(value.items, depth + 1)
            return self._plain(value.attribute("_val"), depth + 1) if value.state is not None else None
        if isinstance(value, dict):
            return {key.lower(): self._plain(item, depth + 1) for key, item in value.items() if isinstance(key, str)}
        if isinstance(value, (list, tuple)):
            return [self._plain(item, depth + 1) for item in value]
        return value if isinstance(value, (str, int, float, bool)) else None
