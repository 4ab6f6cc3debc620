"""The page in a real browser, beside a real `run`: start, stop in mid-motion, take over, hand back, lose the page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chromium import Tab, browser
from console_page import TOKEN, eventually

from robot_runtime.recording.annotations import read_annotations
from robot_runtime.recording.reader import LogReader

LAID_OUT = """(() => {
    const r = document.getElementById('stop').getBoundingClientRect();
    return r.top >= 0 && r.bottom <= innerHeight && r.height >= 60 && r.width >= 0.9 * (innerWidth - 60)
        && document.documentElement.scrollWidth <= innerWidth;
})()"""


@contextmanager
def running(out: Path, *more: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A run of the fake robot with a console on any port, and the file of what it prints."""
    said = out.with_suffix(".txt")
    arguments = ["run", "--robot", "fake", "--real-time", "--console", "0", "--console-token", TOKEN, "--out", str(out)]
    program = "import sys; from robot_runtime.cli.main import main; main(sys.argv[1:])"
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments, *more], stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
    try:
        eventually(lambda: b"console: http" in said.read_bytes())
        yield process, said
    finally:
        process.terminate()
        process.wait(20)


def address(said: Path) -> str:
    return next(line.split()[1] for line in said.read_text(encoding="utf-8").splitlines() if "console: " in line)


def take_control(tab: Tab) -> None:
    tab.run("document.getElementById('name').value = 'ada'")
    tab.click("#take")
    tab.until("mine")


@pytest.mark.slow  # a browser, a server of pages, and a robot in real time
def test_an_operator_starts_stops_takes_over_hands_back_and_is_lost(tmp_path: Path, in_real_time: None) -> None:
    out = tmp_path / "logs"
    turning = ("--task", "objectnav_habitat2020", "--agent", "random-actions", "--count", "2", "--attended")
    with running(out, *turning) as (process, said):
        with browser(tmp_path / "wrong") as tab:
            tab.visit(address(said).replace(TOKEN, "wrong"))
            tab.until("document.getElementById('said').textContent.includes('token')")
        with browser(tmp_path / "profile") as tab:
            tab.visit(address(said), 390, 844)
            take_control(tab)
            assert tab.run(LAID_OUT)
            tab.click("#resume")
            tab.until("state.base && Math.abs(state.base.speed[1]) + Math.abs(state.base.speed[0]) > 0.1")
            tab.pointer("mousePressed", "#stop")  # and not released: it acts when it is pressed
            tab.until("eStop && document.getElementById('trip').textContent.includes('stopped: answer after')")
            assert tab.run("document.getElementById('stop').textContent") == "STOPPED"
            tab.until("state.e_stop && !state.base.speed[0] && !state.base.speed[1]")
            tab.pointer("mouseReleased", "#stop")
            tab.until("!document.getElementById('judge').hidden && document.getElementById('final').src")
            tab.click("[data-judgment=invalid]")
            tab.until("document.getElementById('judged').textContent.includes('ada')")
            tab.click("#release")
            tab.until("eStop === false && state.number === 2 && state.stage === 'running'")

            tab.resize(1280, 900, "dark")
            assert tab.run(LAID_OUT)
            tab.click("#takeover")
            tab.until("state.taken_over === 'ada' && state.asks")
            step = tab.run("state.step")
            tab.key("keyDown", "a")
            tab.until(f"state.step > {step} + 1")
            tab.key("keyUp", "a")
            tab.until("state.asks && held === null")
            assert tab.run("state.action") == "turn_left"
            tab.click("#handback")
            tab.until(f"!state.taken_over && state.step > {step} + 3")
            assert tab.faults == []
            tab.picture(tmp_path / "page.png")
        # The browser was killed in mid-motion.
        eventually(lambda: said.read_text(encoding="utf-8").count("emergency stop, the wheels are held") == 2)
        assert process.wait(20) == 0
    first, second = sorted(out.glob("*.mcap"))
    for log in (first, second):
        with LogReader(log) as reader:
            assert reader.end is not None
            assert (reader.end.reason.value, reader.end.detail) == ("interrupted", "base: held by e_stop")
            said_of = read_annotations(log, reader.header)
            steps = list(reader.steps(images=False))
        if log == first:
            assert said_of.judged is not None
            assert (said_of.judged.who, said_of.judged.judgment) == ("ada", "invalid")
        else:
            assert said_of.helped
            by_hand = [step.policy_info["operator"] for step in steps if "operator" in step.policy_info]
            assert len(by_hand) >= 2
            assert all(one["by"] == "ada" and one["intervention"] for one in by_hand)
