"""Names of dataset splits from paths."""

import re
from pathlib import PurePath

_SPLIT = re.compile(r"(train|val|valid|test|minival|debug)([-_][a-z0-9]+)*")
_SUFFIXES = (".gz", ".json", ".yaml", ".yml")


def split_of(dataset: str) -> str:
    """The split, such as ``val_mini`` of ``val_mini.json.gz`` or ``val`` of ``objectnav/val/content/x.json.gz``.

    Args:
        dataset: path of an episode file or folder. The last matching part counts.

    Returns:
        Empty if no part is the name of a split.
    """
    for part in reversed(PurePath(dataset).parts):
        name = part
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        if _SPLIT.fullmatch(name):
            return name
    return ""
