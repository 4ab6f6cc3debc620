"""Places outside ``task_kinds`` that know kinds of task by name: comparisons and closed tables."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tests.structure.tree import KINDS, nodes, outside_kinds, place, product_files

_FIRST_LAYOUT = "_EMPTY_DETAILS"  # fields of the first layout of logs, from which the keys of episodes are computed

# Converters and the YAML of episodes name the fields of the files that they read; training may know kinds.
_TRANSLATORS = ("robot_runtime/policies/convert/", "robot_runtime/datasets/native_yaml.py", "sim_bridge/training/")

VOCABULARIES = {
    "kinds": KINDS,
    "sensors": frozenset(
        (
            "pointgoal", "pointgoal_with_gps_compass", "objectgoal", "areagoal", "instruction", "instruction_tokens",
            "question", "question_tokens", "obj_start_gps_compass", "obj_goal_gps_compass", "held", "phase", "program",
            "imagegoal",
        )
    ),
    "formats": frozenset(
        (
            "robothor", "ithor_rearrangement", "r2r_ce", "mp3d_eqa", "habitat_rearrange", "habitat_objectnav",
            "habitat_pointnav",
        )
    ),
    "agents": frozenset(
        (
            "pointnav-depth", "random", "random-actions", "forward-only", "goal-follower", "bug", "oracle", "classical",
            "eqa-memory", "eqa-attention", "eqa-navigator", "eqa-shortest-path", "human",
        )
    ),
}  # fmt: skip
"""Names by which a table is recognized, whatever it is called."""

SUCCESS_RULES = frozenset(("distance", "visible", "room", "answer", "objects"))
"""Rules of success; as keys of a dict they are fields of other things."""


def comparisons() -> list[str]:
    """Lines outside ``task_kinds`` that compare the kind of a task with a name or a group of names.

    Two tasks may be compared with each other, and a task with the ``kinds`` that an object declares: that names no
    kind.
    """
    places = set()
    for path, node in nodes(list(filter(outside_kinds, product_files()))):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any(map(_kind_of_task, sides)) and not all(map(_is_kind, sides)):
                places.add(place(path, node.lineno))
    return sorted(places)


def other_comparisons() -> list[str]:
    """Lines of the same files that compare anything else with the name of a kind: ``self.kind``, a local variable."""
    places = set()
    for path, node in nodes(list(filter(outside_kinds, product_files()))):
        if isinstance(node, ast.Compare) and not _is_translator(place(path, 0)):
            sides = (node.left, *node.comparators)
            if any(_words(side) & KINDS for side in sides) and not any(map(_kind_of_task, sides)):
                places.add(place(path, node.lineno))
    return sorted(places)


def closed_tables() -> list[str]:
    """Assigned dicts, tuples of modules and ``Literal`` types outside ``task_kinds`` that list names of a vocabulary.

    Two names make a table, or one kind as the key of a dict.
    """
    places = set()
    for path, node in nodes(list(filter(outside_kinds, product_files()))):
        where = place(path, getattr(node, "lineno", 0))
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and not _is_translator(where):
            shown = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            if shown == _FIRST_LAYOUT:
                continue
            values = (node.value, node.annotation if isinstance(node, ast.AnnAssign) else None)
            places.update(f"{where} {shown}" for value in values if value is not None and _is_closed(value))
    return sorted(places)


def _is_closed(node: ast.expr) -> bool:
    if isinstance(node, ast.Dict):
        keys = {_name(key) for key in node.keys if isinstance(key, ast.Constant)}
        values = {_name(value) for value in node.values if isinstance(value, ast.Constant)}
        return bool(keys & KINDS) or _lists(keys) or len(values & KINDS) > 1
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).split(".")[-1] == "Literal":
        words = _words(node.slice)
        return _lists(words) or len(words & SUCCESS_RULES) > 1
    if isinstance(node, (ast.Tuple, ast.List)):
        return len({_name(item) for item in node.elts} & VOCABULARIES["formats"]) > 1
    return False


def _lists(words: Iterable[str | None]) -> bool:
    return any(len(vocabulary.intersection(filter(None, words))) > 1 for vocabulary in VOCABULARIES.values())


def _kind_of_task(node: ast.expr) -> bool:
    return _is_kind(node) and ast.unparse(node).split(".")[-2].lstrip("_") == "task"


def _is_kind(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("kind", "kinds")


def _words(node: ast.expr) -> set[str]:
    items = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else (node,)
    return {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Call):
        return _name(node.func)
    return ast.unparse(node).split(".")[-1]


def _is_translator(where: str) -> bool:
    return where.startswith(_TRANSLATORS)
