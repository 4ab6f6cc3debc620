"""Keys as terminals report them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common.terminal_keys import WAIT_S, KeyStream


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"w", ["w"]),
        (b"Wa", ["w", "a"]),
        (b"wwww", ["w"] * 4),
        (b"\x1b[[A", []),
        (b"\x1b[M !!", []),
        (b"\x1b[I", []),
        (b"\x1b[119;1:3u", []),
        (b"\x1bw", []),
        (b"\x1b[200~far\x1b[201~w", ["w"]),
        (b"find door", []),
        (b"\x1b[A\x1b[D\x1b[C", ["up", "left", "right"]),
        (b"\x1bOA", ["up"]),
        (b"\x1b[1;2D\x1b[1;2C", ["shift+left", "shift+right"]),
        (b"\x1b[5~w", ["w"]),
        (b"\x1b", []),
    ],
)
def test_keys_have_the_names_of_the_table(data: bytes, names: list[str]) -> None:
    assert KeyStream().feed(data, 0.0) == names


@given(st.binary(max_size=64))
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert all(name for name in KeyStream().feed(data, 0.0))


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"\x1b[D", ["left"]),
        (b"\x1bOA", ["up"]),
        (b"\x1b[1;2C", ["shift+right"]),
        (b"\x1b[200~far and wide\x1b[201~w", ["w"]),
        (b"\x1b[M !!", []),
        (b"\x1b[[A", []),
        (b"\x1b[<64;10;20M", []),
    ],
)
def test_a_sequence_that_arrives_in_two_or_more_reads_is_the_same_key(data: bytes, names: list[str]) -> None:
    for cut in range(1, len(data)):
        keys = KeyStream()
        assert keys.feed(data[:cut], 0.0) + keys.feed(data[cut:], 0.03) == names, cut
    keys = KeyStream()
    assert [name for i in range(len(data)) for name in keys.feed(data[i : i + 1], 0.01 * i)] == names


def test_escape_by_itself_takes_no_later_key_with_it() -> None:
    keys = KeyStream()
    assert keys.feed(b"\x1b", 0.0) == []
    assert keys.feed(b"d", WAIT_S + 0.1) == ["d"]


@given(st.lists(st.binary(max_size=8), max_size=8))
def test_no_division_of_any_bytes_is_an_error(reads: list[bytes]) -> None:
    keys = KeyStream()
    for i, data in enumerate(reads):
        keys.feed(data, 0.1 * i)
