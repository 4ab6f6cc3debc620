"""Desktop notifications, by a program on the path that writes down what it was given."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from robot_runtime.campaign.messages import Notifier
from robot_runtime.campaign.plan import Help
from tests.benchmarks.runtime.simulated_campaigns import wait_until

LIMIT_S = 20.0


def test_a_question_is_told_and_shown_on_the_desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, shown, told = tmp_path / "notify-send", tmp_path / "shown", list[str]()
    program.write_text(f'#!/bin/sh\nprintf "%s|%s" "$1" "$2" > {shown}.part\nmv {shown}.part {shown}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    Notifier(Help(desktop=True), told.append).ask("robot 0: charge it; $(date)", {"what": "charge"})
    assert wait_until(shown.exists, LIMIT_S)
    assert shown.read_text() == "robot-runtime campaign|robot 0: charge it; $(date)"
    assert told == ["robot 0: charge it; $(date)"]


@pytest.mark.parametrize("program", [None, "#!/bin/sh\nexit 1\n"])
def test_a_notification_that_cannot_be_shown_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None
) -> None:
    if program is not None:
        (tmp_path / "notify-send").write_text(program)
        (tmp_path / "notify-send").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    told: list[str] = []
    Notifier(Help(desktop=True), told.append).ask("charge it", {})
    assert wait_until(lambda: len(told) == 2, LIMIT_S)
    assert told[0] == "charge it"
    assert "no desktop notification" in told[1]


def test_a_hook_that_is_not_reached_is_told() -> None:
    told: list[str] = []
    with socket.socket() as deaf:  # bound, and not listening
        deaf.bind(("127.0.0.1", 0))
        hook = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        Notifier(Help(hook=hook), told.append).ask("charge it", {})
        assert wait_until(lambda: len(told) == 2, LIMIT_S)
    assert told[1].startswith(f"{hook}: not reached")
