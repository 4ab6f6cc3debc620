"""Names of the keys that a terminal reports."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(rb"\x1b(?:\[|O)(?:1;([0-9]))?([ABCD])|\x1b\[[0-9;]*[ -~]|\x1b|[ -~]")
_ARROWS = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}


def terminal_keys(data: bytes) -> list[str]:
    """Return the names of the keys that a terminal reports; unknown sequences are left out.

    Args:
        data: bytes read from the terminal; a sequence that is cut off is lost.
    """
    names = []
    for match in _SEQUENCE.finditer(data):
        modifier, arrow = match.groups()
        if arrow is not None:
            names.append(("shift+" if modifier == b"2" else "") + _ARROWS[arrow])
        elif len(match[0]) == 1 and match[0] != b"\x1b":
            names.append(match[0].decode().lower())
    return names
