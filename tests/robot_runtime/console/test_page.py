"""The page in a real browser, at the sizes of a phone and a desk, through a tutorial's campaign to its table."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import Tab, browser
from console_page import TOKEN, eventually
from docs_pages import ROOT, run_page, steps
from open_room import fake_robot, make_task

from robot_runtime.campaign.ledger import read_ledger
from robot_runtime.campaign.status import read_status
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.console.console import Console, ConsoleSettings
from robot_runtime.console.web import Neighbor
from robot_runtime.recording.reader import LogReader

TUTORIAL = ROOT / "docs" / "tutorials" / "operate-a-campaign.md"
PROGRAM = "import sys; from robot_runtime.cli.main import main; main(sys.argv[1:])"
LAID_OUT = """(() => {
    const r = document.getElementById('stop').getBoundingClientRect();
    return r.top >= 0 && r.bottom <= innerHeight && r.height >= 60 && r.width >= 0.9 * (innerWidth - 60)
        && document.documentElement.scrollWidth <= innerWidth;
})()"""
BOTH_VISIBLE = """(() => {
    const above = document.querySelector("footer").getBoundingClientRect().top;
    return ["color-img", "pad"].every((id) => {
        const r = document.getElementById(id).getBoundingClientRect();
        return r.height > 0 && r.top >= 0 && r.bottom <= above;
    });
})()"""
"""Whether a person who drives sees picture and keypad at once, without scrolling."""

PICTURES = os.environ.get("CONSOLE_PICTURES")
"""Folder for pictures of the page, to be looked at."""


def command(starts_with: str) -> list[str]:
    """Arguments of the tutorial's command that begins so."""
    lines = TUTORIAL.read_text(encoding="utf-8").splitlines()
    return shlex.split(next(line for line in lines if line.startswith(f"robot-runtime {starts_with}")))[1:]


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The tutorial's campaign with its page on any port, and the file of what it prints."""
    said = folder / "said.txt"
    arguments = [part.replace("0.0.0.0:8900", "0") for part in command("campaign run")]
    own = ["--console-token", TOKEN, "--console-silence-s", "20"]  # a busy machine is no lost page
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments, *own],
            cwd=folder,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
    try:
        eventually(lambda: b"console: http" in said.read_bytes() or process.poll() is not None)
        yield process, said
    finally:
        process.terminate()
        process.wait(60)


def address(said: Path) -> str:
    text = said.read_text(encoding="utf-8")
    return next(word for word in text.split() if word.startswith("http"))


def act(tab: Tab, selector: str, done: str) -> None:
    """Click until an expression is true: what appears on the page at that moment can move a button away."""

    def click() -> bool | None:
        tab.click(selector)
        return wait_for(SystemClock(), lambda: tab.run(done) or None, 2.0, 0.05)

    assert wait_for(SystemClock(), click, 60.0, 0.05), f"never true: {done}; {tab.run('document.body.innerText')}"


def take_control(tab: Tab, name: str) -> None:
    tab.run(f"document.getElementById('name').value = '{name}'")
    tab.until("!$('take').disabled")
    act(tab, "#take", "link.mine")


def bring_to_start(tab: Tab) -> None:
    """Drive to the start by taps of keys, as the page says, until the run begins."""

    def tap() -> bool | None:
        now: dict[str, Any] = tab.run(
            "({stage: state.stage, offset: state.offset, moves: state.base.speed.some(Boolean)})"
        )
        if now["stage"] == "running":
            return True
        key = "" if now["moves"] else _key(now["offset"] or {})
        if key:
            tab.key("keyDown", key)
            SystemClock().sleep(0.3)
            tab.key("keyUp", key)
        return None

    assert wait_for(SystemClock(), tap, 120.0, 0.3), tab.run("document.body.innerText")


def _key(offset: dict[str, Any]) -> str:
    if "ahead_m" not in offset:
        return ""
    away_m = math.hypot(offset["ahead_m"], offset["left_m"])
    bearing = math.atan2(offset["left_m"], offset["ahead_m"])
    if away_m > 0.06:
        if abs(math.sin(bearing)) * away_m > 0.05:
            return "a" if (bearing > 0) == (abs(bearing) < math.pi / 2) else "d"
        return "w" if offset["ahead_m"] > 0 else "s"
    return "" if abs(offset["turn_deg"]) < 8 else "a" if offset["turn_deg"] > 0 else "d"


def picture(tab: Tab, name: str) -> None:
    """Save the page at both sizes and in both colors, where that is asked for; the phone's size is left."""
    for size, scheme in (((1280, 900), "light"), ((1280, 900), "dark"), ((390, 844), "dark"), ((390, 844), "light")):
        if PICTURES or size[0] < 500:
            tab.resize(*size, scheme)
            tab.run("scrollTo(0, 0)")
            assert tab.run(LAID_OUT)
        if PICTURES:
            tab.picture(Path(PICTURES) / f"{name}-{size[0]}-{scheme}.png")


@pytest.mark.slow  # a browser, a campaign, and a robot in real time
def test_a_campaign_is_operated_from_a_phone_as_the_tutorial_says(tmp_path: Path, in_real_time: None) -> None:
    run_page(TUTORIAL, steps(TUTORIAL), tmp_path, [Path(sys.executable).parent])
    folder = tmp_path / "campaigns" / "by-hand"
    with running(tmp_path) as (process, said):
        with browser(tmp_path / "first") as tab:
            tab.visit(address(said).replace(TOKEN, "wrong"))
            tab.until("document.getElementById('said').textContent.includes('token')")
            tab.visit("about:blank")
            tab.visit(address(said), 390, 844)
            take_control(tab, "ada")
            tab.until("state.waits && state.alerts.length && !document.getElementById('alerts').hidden")
            act(tab, "#resume", "state.steers && !$('placement').hidden")
            picture(tab, "placing")
            assert tab.run(BOTH_VISIBLE)
            bring_to_start(tab)
            tab.until("state.base && Math.abs(state.base.speed[0]) + Math.abs(state.base.speed[1]) > 0.1")
            tab.pointer("mousePressed", "#stop")  # and not released: it acts when it is pressed
            tab.until("link.eStop && document.getElementById('trip').textContent.includes('stopped: answer after')")
            assert tab.run("document.getElementById('stop').textContent") == "STOPPED"
            tab.until("state.e_stop && !state.base.speed.some(Boolean)")
            tab.pointer("mouseReleased", "#stop")
            picture(tab, "stopped")

            act(tab, "#release", "link.eStop === false")
            tab.until("state.steers && hasReference")
            assert tab.run(
                "!document.getElementById('overlay').hidden && document.getElementById('overlay').naturalWidth > 0"
            )
            bring_to_start(tab)
            act(tab, "#takeover", "state.taken_over === 'ada'")
            tab.until("state.asks")
            step = tab.run("state.step")
            tab.key("keyDown", "a")
            tab.until(f"state.step > {step} + 1")
            tab.key("keyUp", "a")
            tab.until("state.asks && !held.length")
            assert tab.run("state.action") == "turn_left"
            picture(tab, "taken-over")
            assert tab.run(BOTH_VISIBLE)
            act(tab, "#handback", "!state.taken_over")
            tab.until("state.base.speed.some(Boolean)")
            assert tab.faults == []
        # The browser was closed in mid-motion.
        with browser(tmp_path / "second") as tab:
            tab.visit(address(said), 390, 844)
            tab.until("link.eStop")
            take_control(tab, "ada")
            act(tab, "#release", "link.eStop === false")
            tab.until("state.steers")
            bring_to_start(tab)
            tab.until("state.stage === 'over' && !document.getElementById('judge').hidden && $('final').src")
            assert "straight" not in tab.run("$('judge').innerText")  # who judges must not know the policy
            picture(tab, "judging")
            act(tab, "[data-judgment=success]", "$('judged').textContent.includes('ada')")
            tab.run("$('name').value = 'ben'; $('note').value = 'at the goal'")
            act(tab, "[data-judgment=fail]", "$('judged').textContent.includes('ben') || !link.isOpen")
            tab.until("!$('closing').hidden && $('closing-lines').textContent.includes('disagree')")
            result = tab.run("[...$('closing-lines').children].map((line) => line.textContent)")
            picture(tab, "closing")
            eventually(lambda: process.poll() is not None)
        assert process.returncode == 0, said.read_text(encoding="utf-8")
        in_terminal = " ".join(said.read_text(encoding="utf-8").split())
        assert all(line in in_terminal for line in result if not line.startswith("log:"))

    first, helped, counted = (entry for entry in read_ledger(folder) if entry.kind == "ended")
    assert [one["facts"]["kind"] for one in (first, helped, counted)] == ["e_stop", "e_stop", None]
    with LogReader(folder / helped["log"]) as reader:
        by_hand = [one.policy_info["operator"] for one in reader.steps(images=False) if "operator" in one.policy_info]
    assert len(by_hand) >= 2
    assert all(one["by"] == "ada" and one["intervention"] for one in by_hand)
    verdicts = [
        (entry["by"], entry["success"], entry["note"]) for entry in read_ledger(folder) if entry.kind == "verdict"
    ]
    assert verdicts == [("ada", True, ""), ("ben", False, "at the goal")]
    assert [entry["by"] for entry in read_ledger(folder) if entry.kind == "event"] == ["ada"]
    assert read_status(folder).finished

    # Somebody else gets the folder, without the plan's other files.
    tables = []
    for other in ("one", "two"):
        (tmp_path / other).mkdir()
        subprocess.run(["cp", "-r", folder, tmp_path / other / "copy"], check=True)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *command("campaign report")], cwd=tmp_path / other, check=False
        )
        assert done.returncode == 0
        report = tmp_path / other / "report"
        tables.append((json.loads((report / "result.json").read_text()), (report / "runs.csv").read_text()))
    assert tables[0] == tables[1]
    assert tables[0][0]["findings"] == []


@pytest.mark.slow  # a browser
def test_two_robots_are_watched_and_stopped_from_one_page(tmp_path: Path) -> None:
    quiet = ConsoleSettings(port=0, token=TOKEN, silence_s=20)
    with fake_robot(make_task()) as first, fake_robot(make_task()) as second, Console(second, quiet, list) as behind:
        port = int(behind.url.split("/#")[0].rsplit(":", 1)[1])
        beside = (Neighbor("1: bob", port, behind.control_port),)
        settings = replace(quiet, name="0: <ann>", others=beside)
        with Console(first, settings, list) as console, browser(tmp_path) as tab:
            tab.visit(console.url, 390, 844)
            tab.until("links.every((one) => one.eStop === false)")
            take_control(tab, "ada")
            act(tab, "#robots button:nth-child(2)", "link.name === '1: bob' && state.robot")
            take_control(tab, "ada")
            assert tab.run("links.every((one) => one.mine)")
            tab.pointer("mousePressed", "#stop")
            tab.until("link.eStop && links[0].eStop === false")
            tab.pointer("mousePressed", "#stop-all")
            tab.until("links.every((one) => one.eStop)")
            picture(tab, "robots")
            assert tab.faults == []
        assert console.stops.engaged() is True
