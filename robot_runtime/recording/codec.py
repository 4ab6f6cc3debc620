"""JSON form of dataclasses, derived from their type hints: what is written, how it is read, and its JSON schema.

A dataclass, its hints and its ``Attributes:`` are the one definition of a record. A type or a field whose form does not
follow from its hint has a codec of its own in a table of :data:`Special` entries.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from robot_runtime.recording.json_values import boolean, integer, items, mapping, number, text

Schema = dict[str, Any]


def unchanged(value: Any) -> Any:
    """The encoder of values that ``json_output.plain`` converts as they are."""
    return value


@dataclass(frozen=True, slots=True)
class Codec:
    """JSON form of a type.

    Attributes:
        decode: function that makes a value from its JSON; raises an error of ``json_values.MALFORMED``.
        schema: JSON schema for viewers; empty for what they cannot show, as arrays of arrays.
        encode: function whose result ``json_output.plain`` converts to JSON.
        required: whether every log has the field; without it, the field has its default.
    """

    decode: Callable[[Any], Any]
    schema: Schema
    encode: Callable[[Any], Any] = unchanged
    required: bool = True

    @property
    def properties(self) -> Schema:
        """The schemas of an object's fields by name."""
        properties: Schema = self.schema.get("properties", {})
        return properties


Special = Mapping[Any, "Codec | Callable[[Codec], Codec]"]
"""By type, or by dataclass and name of a field: a codec, or a function that changes the derived codec."""

INTEGER = Codec(integer, {"type": "integer"})
NUMBER = Codec(number, {"type": "number", "description": "Infinity, -Infinity and NaN are strings"})
TEXT = Codec(text, {"type": "string"})
OBJECT = Codec(mapping, {"type": "object"})
_SIMPLE: dict[Any, Codec] = {
    int: INTEGER,
    float: NUMBER,
    str: TEXT,
    bool: Codec(boolean, {"type": "boolean"}),
    dict[str, Any]: OBJECT,
    Mapping[str, Any]: OBJECT,
}


def described(about: str) -> Callable[[Codec], Codec]:
    """A change of a codec: its schema with a description."""
    return lambda codec: replace(codec, schema={**codec.schema, "description": about})


def optional(codec: Codec) -> Codec:
    """A change of a codec: older logs lack the field."""
    return replace(codec, required=False)


def codec_of(hint: Any, special: Special, field: tuple[type, str] | None = None) -> Codec:
    """The codec of a type, as special entries of the type, and of the field that has it, say.

    Raises:
        TypeError: the type has no form in a log.
    """
    own = special.get(hint if field is None else field)
    if isinstance(own, Codec):
        return own
    codec = _derived(hint, special) if field is None else codec_of(hint, special)
    return codec if own is None else own(codec)


def parts_of(cls: Any, special: Special) -> dict[str, Codec]:
    """The codecs of the fields of a dataclass or named tuple by name. Raises ``TypeError``."""
    hints = get_type_hints(cls)
    names = [field.name for field in fields(cls)] if is_dataclass(cls) else cls._fields
    return {name: codec_of(hints[name], special, (cls, name)) for name in names}


def object_codec(parts: Mapping[str, Codec], make: Callable[..., Any] | None = None) -> Codec:
    """The codec of a JSON object with named parts.

    Args:
        parts: codecs of the attributes that are written, by name.
        make: function that makes the value, given the attributes in their order; None for a dictionary of them.
    """
    encoders = [(name, part.encode) for name, part in parts.items()]

    def encode(value: Any) -> dict[str, Any]:
        return {name: encode(getattr(value, name)) for name, encode in encoders}

    properties = {name: part.schema for name, part in parts.items() if part.schema}
    return Codec(_decoder(parts, make), {"type": "object", "properties": properties}, encode)


def _decoder(parts: Mapping[str, Codec], make: Callable[..., Any] | None) -> Callable[[Any], Any]:
    """The decoder of a JSON object, compiled for its fields, as ``dataclasses`` does: logs have millions of values."""
    names = {"make": make, "number": number, **{f"decode_{name}": part.decode for name, part in parts.items()}}
    values = {name: (_NUMBER if part.decode is number else _VALUE).format(name=name) for name, part in parts.items()}
    older = [
        f"**({{'{name}': {values.pop(name)}}} if '{name}' in data else {{}})"
        for name, part in parts.items()
        if not part.required
    ]
    if make is None:
        source = f"{{{', '.join([*(f'{name!r}: {value}' for name, value in values.items()), *older])}}}"
    else:
        source = f"make({', '.join([*values.values(), *older])})"
    decode: Callable[[Any], Any] = eval(f"lambda data: {source}", names)
    return decode


_VALUE = "decode_{name}(data['{name}'])"
_NUMBER = "value if type(value := data['{name}']) is float else number(value)"


def columns_codec(cls: type, special: Special) -> Codec:
    """The codec of a list of named tuples, written by columns."""
    parts = {name: _array(part) for name, part in parts_of(cls, special).items()}

    def encode(rows: list[Any]) -> dict[str, Any]:
        return dict(zip(parts, zip(*rows, strict=True), strict=True))

    def decode(data: Mapping[str, Any]) -> list[Any]:
        columns = [part.decode(data[name]) for name, part in parts.items()]
        return [cls(*row) for row in zip(*columns, strict=True)]

    return replace(object_codec(parts), decode=decode, encode=encode)


def _derived(hint: Any, special: Special) -> Codec:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if origin in (Union, UnionType):
        return _union([member for member in arguments if member is not NoneType], special)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _by_name(codec_of(arguments[1], special))
    if origin in (list, tuple) and len(set(arguments) - {...}) == 1:
        array = _array(codec_of(arguments[0], special))
        return array if origin is list else _tuple(array, None if ... in arguments else len(arguments))
    if is_dataclass(hint):
        return _dataclass(hint, special)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return replace(TEXT, decode=functools.cache(hint))  # a call of an enumeration costs as much as a pose
    raise TypeError(f"{hint} has no form in a log: write its fields as numbers, text, or dataclasses of these")


def _dataclass(cls: Any, special: Special) -> Codec:
    parts = parts_of(cls, special)
    codec = object_codec(parts, cls)
    if all(part.encode is unchanged for part in parts.values()):
        codec = replace(codec, encode=unchanged)
    return codec


def _array(item: Codec) -> Codec:
    decode, encode = item.decode, item.encode
    viewable = item.schema.get("type", "array") != "array"
    return Codec(
        lambda value: [*map(decode, items(value))],
        {"type": "array", "items": item.schema} if viewable else {},
        encode if encode is unchanged else lambda value: [*map(encode, value)],
    )


def _tuple(array: Codec, length: int | None) -> Codec:
    """A tuple of equal members; ``length`` is None for any length."""

    def decode(value: Any) -> tuple[Any, ...]:
        values = tuple(array.decode(value))
        if length is not None and len(values) != length:
            raise ValueError(f"{len(values)} values, not {length}")
        return values

    return replace(array, decode=decode)


def _by_name(item: Codec) -> Codec:
    decode, encode = item.decode, item.encode
    return Codec(
        lambda value: {name: decode(inner) for name, inner in mapping(value).items()},
        {"type": "object", **({"additionalProperties": item.schema} if item.schema else {})},
        encode if encode is unchanged else lambda value: {name: encode(inner) for name, inner in value.items()},
    )


def _union(members: list[Any], special: Special) -> Codec:
    """The codec of a value or None."""
    codec = codec_of(members[0], special) if len(members) == 1 else _one_of(members, special)
    decode, encode = codec.decode, codec.encode
    return Codec(
        lambda value: None if value is None else decode(value),
        codec.schema,
        encode if encode is unchanged else lambda value: None if value is None else encode(value),
    )


def _one_of(members: list[Any], special: Special) -> Codec:
    """The codec of dataclasses that are recognized by their fields."""
    codecs = [(parts_of(member, special), codec_of(member, special)) for member in members]
    decoders = {frozenset(parts): codec.decode for parts, codec in codecs}
    if any(codec.encode is not unchanged for _, codec in codecs):
        raise TypeError(f"{members} have fields that are not written as they are")
    merged = {name: part for parts, _ in codecs for name, part in parts.items()}
    return Codec(lambda data: decoders[frozenset(data)](data), object_codec(merged).schema)
