"""What the page says of a robot that it does not hear, of a verdict that is taken back, and of the end of a run."""

from __future__ import annotations

import multiprocessing
from contextlib import closing
from pathlib import Path

import pytest
from chromium import Tab, browser
from console_page import TOKEN, eventually
from open_room import fake_robot, make_episode, make_scene, make_task

from robot_runtime.console.console import Console, ConsoleSettings
from robot_runtime.env import Env
from robot_runtime.policies import load_policy
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.verdict_files import read_verdicts
from robot_runtime.recording.writer import Recorder
from robot_runtime.runtime import run_episode

OMITTED = "figure, svg"
"""Text over pictures, whose background is not a color."""


def take_control(tab: Tab) -> None:
    tab.run("$('name').value = 'ada'")
    tab.until("!$('take').disabled")
    tab.run("$('take').click()")
    tab.until("link.mine")


@pytest.mark.slow  # a browser
def test_what_the_page_shows_ages_is_taken_back_and_ends_with_the_result(tmp_path: Path) -> None:
    task = make_task()
    recorder = Recorder(tmp_path / "logs")
    settings = ConsoleSettings(port=0, token=TOKEN, silence_s=20)
    with browser(tmp_path / "profile") as tab, closing(recorder), fake_robot(task) as robot:
        console = Console(robot, settings, list, log=lambda: recorder.path)
        with console, Env(robot, task, make_scene(), (recorder, *console.subscribers)) as env:
            tab.visit(console.url, 390, 844)
            tab.until("state.robot && !$('no-picture').hidden")
            tab.looks_right(OMITTED, hides=True)
            take_control(tab)
            with console.episode(make_episode(), 1, 2):
                run_episode(env, console.supervised(load_policy("goal-follower")), make_episode(), seed=0)
            tab.until("state.stage === 'over' && mapImage && $('final').src && !$('judge').hidden")
            assert tab.run("state.goals.length === 1 && extent.rooms[0][0] === 'hall'")
            tab.until("$('pose-text').textContent.includes('last')")
            tab.looks_right(OMITTED, hides=True)

            tab.run("document.querySelector('[data-judgment=success]').click()")
            tab.until("!$('undo-line').hidden && $('undo-text').textContent.includes('ada')")
            tab.run("$('undo').click(); document.querySelector('[data-judgment=fail]').click()")
            tab.run("pending.at -= UNDO_MS")  # ten seconds later
            tab.until("$('judged').textContent.includes('ada')")

            tab.run("link.stop('ada')")
            tab.until("link.eStop && state.stop_reason.includes('ada')")
            assert tab.run("$('alerts').firstChild.className") == "held"
            assert tab.run("!$('release').hidden")
            tab.run("$('join').open = true")
            tab.until("$('join-img').naturalWidth > 100")
        tab.until("!$('closing').hidden && $('closing-lines').textContent.includes('1 × done')")
        tab.looks_right(OMITTED, hides=True)
        assert tab.run("$('banner').hidden")
        assert tab.faults == [] or all("WebSocket" in fault for fault in tab.faults)
    (log,) = (tmp_path / "logs").glob("*.mcap")
    with LogReader(log) as reader:
        said = read_verdicts(log, reader.header).statements
    assert [(one.who, one.judgment) for one in said] == [("ada", "fail")]


@pytest.mark.slow  # a browser
def test_a_lost_robot_is_not_shown_as_a_well_one(tmp_path: Path) -> None:
    settings = ConsoleSettings(port=0, token=TOKEN, silence_s=20)
    with browser(tmp_path) as tab, fake_robot(make_task()) as robot, Console(robot, settings, list) as console:
        tab.visit(console.url, 390, 844)
        tab.until("state.robot && $('l-base').className === 'good'")
        take_control(tab)
        (process,) = (child for child in multiprocessing.active_children() if child.name == "console")
        process.kill()
        tab.until("!$('banner').hidden && $('banner').textContent.includes('old')")
        tab.until("['l-base', 'l-pose'].every((id) => $(id).className === 'bad')")
        assert tab.run("link.mine && $('l-link').className") == "good"
        tab.run("link.stop('ada')")
        eventually(console.stops.engaged)
        tab.run("link.control.close()")
        tab.run("link.open = () => {}")
        tab.until("$('banner').textContent.includes('Connection lost, the robot has stopped')")
        tab.until("!$('operator').textContent.includes('you are in control')")
        tab.looks_right(OMITTED, hides=True)
