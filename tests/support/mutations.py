"""Mutations of files, as a fuzzer makes them: bytes, lines, and values of YAML and JSON documents."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import yaml

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY a{i} "{f"&a{i - 1 or str()};" * 10}">' for i in range(1, 12)
)

FRAGMENTS = (
    *("&a [*a]", "*a", "!!int x", "!!timestamp x", "2026-02-31", "9" * 100_000, "0x" + "f" * 5000, ".nan", "- " * 5000),
    *("[" * 5000, "{" * 5000, "? ", "<<: 1", "%TAG ! x\n" * 50, "\0", "\ud7ff", "1e309", "-1", "null", "~", LAUGHS),
    *(ENTITIES + "]><x>&a11;</x>", "<a>" * 5000, "&a11;", "NaN", "Infinity", "2000000000", "f 1 2 3\n", "nan nan nan"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**300, 1e308, -1e308, 5e-324, float("nan"), float("inf"), "", "x" * 5000),
    *([], {}, [[]], {"a": {}}, "nan", "1e999", "/dev/zero", "../..", [0.0] * 1000, ["x"] * 1000, "2026-02-31", 1e300),
)
NUMBERS = (
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\0\0\0\0",
    b"\0\0\0\x80",
    b"\0\0\xc0\x7f",
    b"\x01\0\0\0",
    b"\xff",
)


def mutated(data: bytes, random_: random.Random) -> bytes:
    """A file with one to four changes."""
    for _ in range(random_.choice((1, 1, 1, 2, 4))):
        data = random_.choice(_BYTES)(data, random_)
    return data


def mutated_document(document: Any, random_: random.Random) -> Any:
    """A document of lists, dictionaries and values with one to three values replaced, removed or doubled."""
    document = copy.deepcopy(document)
    for _ in range(random_.choice((1, 1, 2, 3))):
        places = [place for place in _places(document) if place]
        if not places:
            return random_.choice(VALUES)
        holder, key = random_.choice(places)
        change = random_.random()
        if change < 0.15:
            del holder[key]
        elif change < 0.25 and isinstance(holder, list):
            holder.extend(copy.deepcopy(holder[key]) for _ in range(random_.choice((1, 100))))
        elif change < 0.4:
            donor, name = random_.choice(places)
            holder[key] = copy.deepcopy(donor[name])
        else:
            holder[key] = copy.deepcopy(random_.choice(VALUES))
    return document


def yaml_bytes(document: Any) -> bytes:
    """The document as YAML."""
    return yaml.safe_dump(document, sort_keys=False).encode("utf-8", "surrogatepass")


def json_bytes(document: Any) -> bytes:
    """The document as JSON, with NaN and infinity."""
    return json.dumps(document).encode()


def _places(document: Any) -> list[tuple[Any, Any]]:
    keys = range(len(document)) if isinstance(document, list) else list(document) if isinstance(document, dict) else ()
    found = [(document, key) for key in keys]
    for key in keys:
        found += _places(document[key])
    return found


def _flip(data: bytes, random_: random.Random) -> bytes:
    at = random_.randrange(len(data) or 1)
    return data[:at] + bytes([random_.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, random_: random.Random) -> bytes:
    return data[: random_.randrange(len(data) + 1)]


def _remove(data: bytes, random_: random.Random) -> bytes:
    at = random_.randrange(len(data) or 1)
    return data[:at] + data[at + random_.choice((1, 4, 64)) :]


def _double(data: bytes, random_: random.Random) -> bytes:
    at = random_.randrange(len(data) or 1)
    return data[:at] + data[at : at + random_.choice((1, 16, 256))] * random_.choice((2, 50)) + data[at:]


def _number(data: bytes, random_: random.Random) -> bytes:
    at, number = random_.randrange(len(data) or 1), random_.choice(NUMBERS)
    return data[:at] + number + data[at + len(number) :]


def _word(data: bytes, random_: random.Random) -> bytes:
    """A hostile fragment in place of a word, or in front of it."""
    at = random_.randrange(len(data) or 1)
    end = at + random_.choice((0, 1, 5))
    return data[:at] + random_.choice(FRAGMENTS).encode("utf-8", "surrogatepass") + data[end:]


_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flip, _flip, _cut, _remove, _double, _number, _word)
