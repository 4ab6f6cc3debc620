"""The words of a refusal: which field, on which line, of which type, with an example that can be copied."""

import dataclasses
import difflib
import functools
import re
import types
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import yaml

from robot_runtime.common import quantities
from robot_runtime.common.yaml_text import FASTEST_LOADER

INLINED = "__inlined__"
"""Attribute of a dataclass with the name of a field whose content stands next to the other fields in files.

Such a class has two class methods: ``arrange(document)`` returns a document with that content under the field's name,
and ``inlined_types()`` the types that it may have, for suggestions.
"""

Place = Sequence[int | str]

_MAX_LOCATED_BYTES = 1 << 20
_NEAR, _NEARER = 0.6, 0.8
_WORDS = {float: "a number", int: "a whole number", str: "text", bool: "true or false", dict: "a mapping"}
_EXAMPLES = {float: "1.0", int: "1", str: "name", bool: "true", dict: "{}"}


def expectation(cls: Any, place: Place) -> str:
    """The type of a field with an example, to end a remedy with; for the whole document, its type."""
    hint, default = _field(cls, place)
    if hint is None:
        return ""
    words, example = _described(hint, str(place[-1]) if place else "")
    if not place:
        return f": it is {words}"
    if isinstance(default, (int, float, str)) and not isinstance(default, Enum) and default != "":
        example = str(default).lower() if isinstance(default, bool) else str(default)
    name = next(part for part in reversed(place) if isinstance(part, str))
    return f": it is {words}" + (f", for example `{name}: {example}`" if example else "")


def missing_block(cls: Any, places: Sequence[Place]) -> str:
    """The fields of one mapping that are missing, as lines to add to it."""
    under = ".".join(map(str, places[0][:-1]))
    lines = [f"{place[-1]}: {_described(_field(cls, place)[0], str(place[-1]))[1] or '{...}'}" for place in places]
    words = ", ".join(f"{place[-1]} is {_described(_field(cls, place)[0], str(place[-1]))[0]}" for place in places)
    return "\n".join([f"add what is missing{f' under {under!r}' if under else ''} ({words}):", *lines])


def named_field(cls: Any, place: Place, message: str) -> list[str]:
    """The field of the mapping at a place that a check of the mapping as a whole names: first, or in quotes."""
    fields = [field for part in _options(_field(cls, place)[0]) for field in _fields(part)]
    return [field for field in fields if re.match(rf"{field}\b", message) or f"'{field}'" in message][:1]


def suggestion(cls: Any, place: Place) -> str:
    """What an unknown field may be meant as: a field of the same mapping, else one of almost its name elsewhere."""
    name = str(place[-1])
    if name.isdigit():
        return f"write decimals with a point, not with a comma, if {name!r} is the end of a number; else remove it"
    siblings = {field: hint for part in _options(_field(cls, place[:-1])[0]) for field, hint in _fields(part).items()}
    close = difflib.get_close_matches(name, siblings, n=1, cutoff=_NEAR)
    if close:
        words, _ = _described(siblings[close[0]], close[0])
        return f"did you mean {close[0]!r}? It is {words}"
    if elsewhere := difflib.get_close_matches(name, field_names(cls), n=1, cutoff=_NEARER):
        return f"did you mean {elsewhere[0]!r}? It belongs to another mapping of the file"
    known = f": the fields there are {', '.join(siblings)}" if siblings else ""
    return f"correct {name!r:.200} there, or remove it{known}"


def field_names(kind: Any) -> set[str]:
    """Every key that may stand somewhere in a document of a type: its fields, and those of the types within."""
    if not dataclasses.is_dataclass(kind):
        return set().union(*(field_names(part) for part in get_args(kind)))
    fields = _fields(cast(Any, kind))
    return set(fields).union(*map(field_names, fields.values()))


def line_of(where: str, place: Place) -> int | None:
    """The line of a field in the file that ``where`` names, as ``PATH`` or ``PATH: field: field``; None if unknown."""
    path, *keys = where.split(": ")
    file = Path(path)
    try:
        if file.suffix not in (".yaml", ".yml") or file.stat().st_size > _MAX_LOCATED_BYTES:
            return None
        node = yaml.compose(file.read_text(encoding="utf-8"), Loader=FASTEST_LOADER)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    line = None
    for part in (*keys, *place):
        found = _child(node, part)
        if found is None:
            break
        line, node = found
    return line


def _child(node: yaml.Node | None, part: int | str) -> tuple[int, yaml.Node] | None:
    """Line and value of an entry of a mapping or sequence."""
    if isinstance(node, yaml.MappingNode):
        pairs: Iterable[tuple[yaml.Node, yaml.Node]] = node.value
        found = next(((key, value) for key, value in pairs if key.value == str(part)), None)
        return (found[0].start_mark.line + 1, found[1]) if found else None
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line + 1, node.value[part]
    return None


@functools.cache
def _fields(cls: Any) -> dict[str, Any]:
    """The types of the fields that stand in a mapping of a dataclass, by name; with those of inlined types."""
    if not dataclasses.is_dataclass(cls):
        return {}
    fields = dict(get_type_hints(cls, include_extras=True))
    inlined = getattr(cls, INLINED, None)
    for kind in getattr(cls, "inlined_types", tuple)():
        fields.update(_fields(kind))
    return {name: hint for name, hint in fields.items() if name != inlined}


def _field(cls: Any, place: Place) -> tuple[Any, Any]:
    """Type and default of the value at a place; names of a union's members in it are skipped."""
    hint, default = cls, None
    for part in place:
        options = _options(hint)
        owner = next((option for option in options if part in _fields(option)), None)
        if owner is not None:
            hint, default = _fields(owner)[str(part)], getattr(owner, str(part), None)
            continue
        items = [get_args(option) for option in options if get_origin(option) in (tuple, list, dict)]
        if items:
            inner = [arg for arg in items[0] if arg is not ...]
            hint = inner[part] if isinstance(part, int) and part < len(inner) > 1 else inner[-1]
            default = None
    return hint, default


def _options(hint: Any) -> list[Any]:
    """The types that a hint consists of, without metadata."""
    if hasattr(hint, "__metadata__"):
        return _options(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return [option for part in get_args(hint) for option in _options(part)]
    return [hint]


def _described(hint: Any, name: str) -> tuple[str, str]:
    """A type in words, and an example of its value in YAML."""
    options = [option for option in _options(hint) if option is not type(None)]
    kind = quantities.declared(hint) or quantities.of_name(name)
    first = options[0] if options else hint
    if get_origin(first) is Literal:
        values = [str(value) for option in options for value in get_args(option)]
        return f"one of {', '.join(values)}", values[0]
    if isinstance(first, type) and issubclass(first, Enum):
        values = [str(member.value) for member in first]
        return f"one of {', '.join(values)}", values[0]
    if get_origin(first) in (tuple, list):
        parts = get_args(first)
        if ... in parts or get_origin(first) is list:
            return "a list", f"[{_described(parts[0], '')[1]}]"
        example = _described(parts[0], "")[1]
        unit = f" in {kind.unit}" if kind is not None and kind.unit else ""
        return f"a list of {len(parts)} values{unit}", f"[{', '.join([example] * len(parts))}]"
    if dataclasses.is_dataclass(first):
        return f"a mapping with {', '.join(field.name for field in dataclasses.fields(first))}", ""
    if kind is not None and first in (float, int):
        number = first(1.0 if kind.low <= 1.0 <= kind.high else kind.high)
        return f"{_WORDS[first]}, {kind.range_text}", f"{number}"
    plain = get_origin(first) or first
    return _WORDS.get(plain, "a value"), _EXAMPLES.get(plain, "")
