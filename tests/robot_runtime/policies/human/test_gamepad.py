"""Gamepads: what events ask for, and a device whose events come through a pipe."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.errors import DeviceFault
from robot_runtime.policies.human import gamepad
from robot_runtime.policies.human.gamepad import (
    ABS_X,
    ABS_Y,
    EAST,
    EV_ABS,
    EV_KEY,
    EVENT,
    HAT_X,
    HAT_Y,
    LEFT_SHOULDER,
    NORTH,
    START,
    Gamepad,
    GamepadState,
    find_gamepad,
)
from robot_runtime.policies.human.inbox import ActionInbox, Choice


def asked(*events: tuple[int, int, int]) -> Choice | None:
    state = GamepadState({ABS_X: (0, 255), ABS_Y: (0, 255)})
    for event in events:
        state.update(*event)
    return state.choice()


@pytest.mark.parametrize(
    ("event", "action"),
    [
        ((EV_ABS, HAT_Y, -1), Action.MOVE_FORWARD),
        ((EV_ABS, HAT_X, -1), Action.TURN_LEFT),
        ((EV_ABS, HAT_X, 1), Action.TURN_RIGHT),
        ((EV_KEY, NORTH, 1), Action.LOOK_UP),
        ((EV_KEY, START, 1), Action.STOP),
    ],
)
def test_hat_and_buttons_ask_for_actions_until_they_are_released(event: tuple[int, int, int], action: Action) -> None:
    assert asked(event) == Choice(action, "gamepad")
    assert asked(event, (*event[:2], 0)) is None


def test_sticks_count_only_while_the_shoulder_button_is_held() -> None:
    full = ((EV_ABS, ABS_Y, 0), (EV_ABS, ABS_X, 0))
    assert asked(*full) is None
    choice = asked(*full, (EV_KEY, LEFT_SHOULDER, 1))
    assert choice is not None
    assert choice.stick == pytest.approx((1.0, 1.0))
    assert asked(*full, (EV_KEY, LEFT_SHOULDER, 1), (EV_KEY, LEFT_SHOULDER, 0)) is None
    assert asked((EV_KEY, LEFT_SHOULDER, 1), (EV_ABS, ABS_Y, 120), (EV_ABS, ABS_X, 130)) is None  # nearly centered


@given(st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 65535), st.integers(-(2**31), 2**31 - 1))))
def test_no_event_is_an_error(events: list[tuple[int, int, int]]) -> None:
    choice = asked(*events)
    assert choice is None or choice.stick is None or all(-1 <= share <= 1 for share in choice.stick)


def eventually(found: Callable[[], object]) -> None:
    assert wait_for(SystemClock(), lambda: found() or None, 10.0, 0.005)


def test_a_gamepad_drives_stops_and_stops_the_robot_when_it_is_gone(tmp_path: Path) -> None:
    device = tmp_path / "event0"
    os.mkfifo(device)
    inbox, stops = ActionInbox(), list[str]()
    opened = threading.Event()

    def write() -> None:
        with device.open("wb", buffering=0) as pad:
            opened.set()
            pad.write(EVENT.pack(0, 0, EV_ABS, HAT_Y, -1) + EVENT.pack(0, 0, EV_KEY, EAST, 1)[:10])
            eventually(lambda: inbox.take(0.0) == Choice(Action.MOVE_FORWARD, "gamepad"))
            pad.write(EVENT.pack(0, 0, EV_KEY, EAST, 1)[10:])
            eventually(lambda: stops)

    reader = os.open(device, os.O_RDONLY | os.O_NONBLOCK)  # so that the writer can open it first
    thread = threading.Thread(target=write)
    thread.start()
    assert opened.wait(10)
    with Gamepad(device, inbox, stops.append):
        os.close(reader)
        thread.join()
        eventually(lambda: len(stops) == 2)
    assert "button" in stops[0]
    assert "gone" in stops[1]
    assert inbox.take(0.0) is None


def test_what_is_held_ends_when_a_gamepad_goes_quiet_while_its_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gamepad, "SILENCE_S", 0.1)
    path, inbox, stops = tmp_path / "pad", ActionInbox(), list[str]()
    os.mkfifo(path)
    receiver = os.open(path, os.O_RDWR)
    try:
        with gamepad.Gamepad(path, inbox, stops.append):
            os.write(receiver, EVENT.pack(0, 0, EV_ABS, HAT_Y, -1))
            eventually(lambda: inbox.held is not None)
            eventually(lambda: inbox.held is None)
            os.write(receiver, EVENT.pack(0, 0, EV_ABS, HAT_Y, -1))
            eventually(lambda: inbox.held is not None)
    finally:
        os.close(receiver)
    assert stops == []


@pytest.mark.parametrize(
    ("button", "action"), [(0x220, Action.MOVE_FORWARD), (0x222, Action.TURN_LEFT), (0x223, Action.TURN_RIGHT)]
)
def test_a_hat_of_buttons_drives_too(button: int, action: Action) -> None:
    choice = asked((EV_KEY, button, 1))
    assert choice is not None
    assert choice.action is action


def test_a_gamepad_that_is_not_there_is_named(tmp_path: Path) -> None:
    with raises_naming(DeviceFault, tmp_path / "event7"):
        Gamepad(tmp_path / "event7", ActionInbox(), lambda _: None)
    with raises_naming(DeviceFault, tmp_path):
        find_gamepad(tmp_path)
