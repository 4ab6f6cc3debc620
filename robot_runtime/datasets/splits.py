"""The split of a dataset that a file belongs to, told by its path, as all published datasets lay it out."""

from __future__ import annotations

import re
from pathlib import PurePath

_SPLIT = re.compile(r"(train|val|valid|test|minival|debug)([-_][a-z0-9]+)*")
_SUFFIXES = (".gz", ".json", ".yaml", ".yml")


def split_of(dataset: str) -> str:
    """E.g. ``val`` of ``objectnav/val/content/x.json.gz``, ``val_mini`` of ``val_mini.json.gz``; empty if none.

    Args:
        dataset: path of an episode file or folder. The part that is nearest to the file counts.
    """
    for part in reversed(PurePath(dataset).parts):
        name = part
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        if _SPLIT.fullmatch(name):
            return name
    return ""
