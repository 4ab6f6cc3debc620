"""Keys as terminals report them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common.terminal_keys import terminal_keys


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"w", ["w"]),
        (b"WaD", ["w", "a", "d"]),
        (b"\x1b[A\x1b[D\x1b[C", ["up", "left", "right"]),
        (b"\x1bOA", ["up"]),
        (b"\x1b[1;2D\x1b[1;2C", ["shift+left", "shift+right"]),
        (b"\x1b[5~w", ["w"]),
        (b"\x1b", []),
    ],
)
def test_keys_have_the_names_of_the_table(data: bytes, names: list[str]) -> None:
    assert terminal_keys(data) == names


@given(st.binary(max_size=64))
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert all(name for name in terminal_keys(data))
