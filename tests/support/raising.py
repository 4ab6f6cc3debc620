"""Assertions about typed errors: the type, the thing that the error names, and a remedy, but not the wording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from robot_runtime.errors import RuntimeFault

E = TypeVar("E", bound=RuntimeFault)


@contextmanager
def raises_naming(kind: type[E], *things: object) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error of a type that names things and says what to do.

    Args:
        kind: the exact family of the error, as for ``pytest.raises``.
        things: what the message or the remedy must name: file names, fields, ids, numbers with their units.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert_names(caught.value, *things)


def assert_names(error: RuntimeFault, *things: object) -> None:
    """Assert that an error names things and has a remedy; see :func:`raises_naming`."""
    said = f"{error.message}\n{error.remedy}"
    missing = [str(thing) for thing in things if str(thing) not in said]
    assert not missing, f"the error does not name {missing}: {said}"
    assert error.message.strip(), "the error has no message"
    assert error.remedy.strip(), f"the error has no remedy: {error.message}"
