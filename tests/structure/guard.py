"""Callers of the Guard that write its protocol out by hand."""

from __future__ import annotations

import ast

from tests.structure.tree import ROOT, documented_files, nodes


def guard_callers() -> list[str]:
    """Files, examples of the documentation among them, that construct a ``Guard`` and therefore tick it themselves."""
    calls = ((path, node.func) for path, node in nodes(documented_files()) if isinstance(node, ast.Call))
    return sorted(
        {str(path.relative_to(ROOT)) for path, called in calls if ast.unparse(called).split(".")[-1] == "Guard"}
    )
