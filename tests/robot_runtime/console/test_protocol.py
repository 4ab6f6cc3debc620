"""Messages of pages: what is one, and that nothing else is taken for one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.console.protocol import MAX_BYTES, BadMessage, Kind, Message, parse_message

SCALARS = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=80) | st.just([{}])
OBJECTS = st.dictionaries(st.sampled_from([*Message.__dataclass_fields__, "other"]), SCALARS, max_size=4)


def test_messages_are_read() -> None:
    assert parse_message('{"do": "beat", "n": 7}') == Message("beat", n=7)
    assert parse_message('{"do": "hold", "action": "turn_left"}').action is Action.TURN_LEFT


@pytest.mark.parametrize(
    "data",
    [
        "",
        "[]",
        "{}",
        '{"do": "fly"}',
        '{"do": "stop", "id": 5}',
        '{"do": "stop", "velocity": 1}',
        '{"do": "hold", "action": "jump"}',
        '{"do": "beat", "n": "7"}',
        b"\x00",
        "[" * 3000,
        '{"do": "verdict", "note": "%s"}' % ("x" * MAX_BYTES),
    ],
)
def test_other_messages_are_refused(data: str | bytes) -> None:
    with raises_naming(BadMessage, "do"):
        parse_message(data)


@pytest.mark.slow
@settings(max_examples=50)
@given(OBJECTS, st.sampled_from(get_args(Kind)))
def test_no_object_is_another_error(value: dict[str, object], kind: str) -> None:
    with suppress(BadMessage):
        parse_message(json.dumps({"do": kind, **value}))
