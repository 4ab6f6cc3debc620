"""Documented parameters that are fragments, as ``path: of the log.``; an editor shows that line alone."""

from __future__ import annotations

import re

from tests.structure.tree import documented_files, place, text

FRAGMENT = re.compile(r"^ {8,}[a-z_0-9, ]+: (of|by|in|for|from|with|on|at|to|as|likewise)\b")


def fragments() -> list[str]:
    """Places of documented parameters that begin with a bare preposition or refer to the one above."""
    return [
        place(path, number)
        for path in documented_files()
        for number, line in enumerate(text(path).splitlines(), 1)
        if FRAGMENT.match(line)
    ]
