"""From the name of a model or mesh node to a category; the table is ``categories.yaml``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from robot_runtime.common import config

_VENDOR_PREFIX = re.compile(r"^aws_robomaker_[a-z]+_")
_COUNTER = re.compile(r"([_. -]*\d+)+$")


@dataclass(frozen=True)
class NameTable:
    """The content of ``categories.yaml``."""

    structure: tuple[str, ...]
    objects: dict[str, str]

    __pydantic_config__ = config.STRICT


@cache
def name_table() -> NameTable:
    """The table that ships with the importer."""
    return config.load(Path(__file__).parent / "categories.yaml", NameTable)


def category_of(name: str) -> str | None:
    """The category that a name tells, None for a part of the building; an unknown name is its own category."""
    plain = _COUNTER.sub("", _VENDOR_PREFIX.sub("", name))
    squeezed = re.sub(r"[^a-z]", "", plain.lower())
    table = name_table()
    known = next((category for word, category in table.objects.items() if word.replace("_", "") in squeezed), None)
    if known is not None:
        return known
    if not squeezed or any(word in squeezed for word in table.structure):
        return None
    return re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")


def identifier(name: str, taken: set[str]) -> str:
    """``name`` as letters, digits and underscores, with a counter if it is taken; adds it to ``taken``."""
    base = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "unnamed"
    candidate, count = base, 2
    while candidate in taken:
        candidate, count = f"{base}_{count}", count + 1
    taken.add(candidate)
    return candidate
