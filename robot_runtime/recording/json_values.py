"""Checked values of JSON of unknown origin: each function returns a value of its kind or raises."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import pydantic_core

MALFORMED = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""Exceptions that malformed JSON raises where its values are used."""

_NON_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_MAX_INTEGER = 1 << 63
T = TypeVar("T")


def loads(data: bytes) -> dict[str, Any]:
    """A JSON object. Raises ``ValueError``: anything else, or nested too deeply."""
    value = pydantic_core.from_json(data, allow_inf_nan=False, cache_strings="keys")
    if not isinstance(value, dict):
        raise ValueError(f"is a {type(value).__name__}, not an object")
    return value


def integer(value: Any) -> int:
    """An integer of at most 64 bits. Raises ``ValueError``."""
    if type(value) is not int or not -_MAX_INTEGER <= value < _MAX_INTEGER:
        raise ValueError(f"{value!r:.50} is not an integer of 64 bits")
    return value


def number(value: Any) -> float:
    """A number; not-a-number and the infinities are strings. Raises ``ValueError``."""
    if type(value) is float:
        return value
    if type(value) is int:
        return float(integer(value))
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    raise ValueError(f"{value!r:.50} is not a number")


def finite(value: Any) -> float:
    """A number that is neither infinite nor not-a-number. Raises ``ValueError``."""
    found = number(value)
    if not math.isfinite(found):
        raise ValueError(f"{found} is not finite")
    return found


def _only(kind: type[T], what: str) -> Callable[[Any], T]:
    """A function that returns a value of a kind. It raises ``ValueError`` for any other, with what that is not."""

    def checked(value: Any) -> T:
        if not isinstance(value, kind):
            raise ValueError(f"{value!r:.50} is {what}")
        return value

    return checked


text = _only(str, "not text")
boolean = _only(bool, "neither true nor false")
items: Callable[[Any], list[Any]] = _only(list, "not a list")
mapping: Callable[[Any], dict[str, Any]] = _only(dict, "not an object")
"""These four return a string, true or false, a JSON array, a JSON object. They raise ``ValueError`` for all else."""
