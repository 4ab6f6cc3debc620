"""The JSON schemas that Foxglove and Lichtblick take; of a channel with any other, they show nothing.

Their parser (Lichtblick's is ``packages/mcap-support/src/parseJsonSchema.ts``) turns a schema into datatypes: an object
is a type with its properties as fields. It throws at a ``type`` that is missing or a list, at an array whose ``items``
have no such type or are arrays, at a ``oneOf`` other than of numeric constants, and at an encoding other than base64.
"""

from __future__ import annotations

from typing import Any

SCALARS = {"boolean": "bool", "string": "string", "number": "float64", "integer": "int"}


class Refused(Exception):
    """The parser would throw."""


def fields_of(schema: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """The scalar type of every field by its message path, such as ``pose.x_m`` or, of an array, ``contact[:]``.

    Raises:
        Refused: the parser would throw; names the field.
    """
    if schema.get("type") != "object":
        raise Refused(f"{prefix or 'root'}: is {schema.get('type')!r}, not an object")
    found: dict[str, str] = {}
    for name, field in schema.get("properties", {}).items():
        found |= _field(field, f"{prefix}{name}")
    return found


def _field(field: dict[str, Any], path: str) -> dict[str, str]:
    if isinstance(field.get("oneOf"), list):
        if not all(isinstance(each.get("const"), int | float) for each in field["oneOf"]):
            raise Refused(f"{path}: oneOf of other than numbers")
        return {path: "int"}
    kind = field.get("type")
    if kind == "array":
        items = field.get("items")
        if not isinstance(items, dict) or items.get("type") == "array" or "contentEncoding" in items:
            raise Refused(f"{path}: items are {items!r}")
        return _typed(items, f"{path}[:]")
    if field.get("contentEncoding", "base64") != "base64":
        raise Refused(f"{path}: encoding {field['contentEncoding']!r}")
    return _typed(field, path)


def _typed(field: dict[str, Any], path: str) -> dict[str, str]:
    kind = field.get("type")
    if kind == "object":
        return fields_of(field, f"{path}.")
    if not isinstance(kind, str) or kind not in SCALARS:
        raise Refused(f"{path}: type is {kind!r}")
    return {path: SCALARS[kind]}


def values_at(message: Any, path: str) -> list[Any]:
    """The values at a message path, without those that are null or missing."""
    if message is None:
        return []
    name, _, rest = path.partition(".")
    value = message.get(name.removesuffix("[:]"))
    each = value if name.endswith("[:]") and value is not None else [value]
    found = [inner for one in each for inner in (values_at(one, rest) if rest else [one])]
    return [one for one in found if one is not None]
