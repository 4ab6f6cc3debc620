"""Runs of one episode in several worlds: the step at which they part, the quantity, and a column for each world."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from rich.console import Console

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Zone
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader, Outcome, StepRecord
from robot_runtime.scenes.objects import Grab, GrabOutcome
from robot_runtime.scoring.sim_to_real.parting import Parting, find_parting
from robot_runtime.scoring.sim_to_real.side_by_side import Worlds, compare_worlds, table
from robot_runtime.scoring.summary import score_log
from robot_runtime.task_kinds.rearrangement.sensors import RearrangementState

F, L, R = synthetic.FORWARD, synthetic.LEFT, synthetic.RIGHT
HEADER = synthetic.header()
REFERENCE = synthetic.drive(HEADER, [F, L, F, F])


def changed(index: int, change: Callable[[StepRecord], StepRecord]) -> list[StepRecord]:
    """The reference from a step on with a change."""
    return [change(step) if step.index >= index else step for step in REFERENCE]


def moved(by_m: float = 0.0, by_deg: float = 0.0) -> Callable[[StepRecord], StepRecord]:
    def move(step: StepRecord) -> StepRecord:
        pose = step.referee.pose
        there = SE2(pose.x_m + by_m, pose.y_m, pose.yaw_rad + math.radians(by_deg))
        return replace(step, referee=replace(step.referee, pose=there))

    return move


def ended(**result: Any) -> Callable[[StepRecord], StepRecord]:
    return lambda step: replace(step, result=replace(step.result, **result))  # type: ignore[type-var]


def deciding(logits: Sequence[float], mode: str = "argmax") -> Callable[[StepRecord], StepRecord]:
    info = {"logits": list(logits), "selection": {"mode": mode, "temperature": 1.0, "seed": [0, 0]}}
    return lambda step: replace(step, policy_info=info)


def test_equal_runs_do_not_part_and_small_differences_are_none() -> None:
    assert find_parting(REFERENCE, REFERENCE) is None
    assert find_parting(REFERENCE, changed(0, moved(0.09, 9.0))) is None


@pytest.mark.parametrize(
    ("index", "change", "quantity", "detail"),
    [
        (2, lambda step: replace(step, action=R), "action", "turn_right instead of turn_left"),
        (3, ended(outcome=Outcome.CONTACT, contact=Zone.CENTER), "contact", "a contact"),
        (3, ended(outcome=Outcome.TIMED_OUT), "outcome", "timed_out instead of reached"),
        (2, lambda step: replace(step, head=replace(step.head, tilt_rad=0.5)), "tilt", "tilts 28.6° apart"),
        (0, moved(0.5), "position", "0.50 m apart"),
        (1, moved(0.0, -11.0), "heading", "11.0° apart"),
        (1, moved(0.0, 355.0), None, ""),
    ],
)
def test_the_first_quantity_that_differs_is_named(index: int, change: Any, quantity: str | None, detail: str) -> None:
    found = find_parting(REFERENCE, changed(index, change))
    assert (found and (found.index, found.quantity, found.detail)) == (quantity and (index, quantity, detail))


def test_another_outcome_of_a_grab_is_one() -> None:
    def grabbing(outcome: GrabOutcome) -> list[StepRecord]:
        return [replace(step, state=RearrangementState(grab=Grab(outcome))) for step in REFERENCE]

    names = list(GrabOutcome)[:2]
    found = find_parting(grabbing(names[0]), grabbing(names[1]))
    assert found is not None
    assert found.quantity == "grab"


def test_a_contact_is_named_before_the_distance_that_follows_from_it() -> None:
    both = changed(3, lambda step: moved(0.2)(ended(outcome=Outcome.CONTACT)(step)))
    found = find_parting(REFERENCE, both)
    assert found is not None
    assert found.quantity == "contact"


def test_a_run_that_ends_earlier_or_later_parts_where_the_other_ends() -> None:
    shorter, longer = find_parting(REFERENCE, REFERENCE[:3]), find_parting(REFERENCE[:3], REFERENCE)
    assert (str(shorter), str(longer)) == ("step 3: ended after 2 steps", "step 3: not ended after 2 steps")


@pytest.mark.parametrize(
    ("logits", "mode", "near", "text"),
    [
        ([0.0, 2.0, 1.93, -1.0], "argmax", True, "near tie, best logits 0.07 apart"),
        ([0.0, 2.0, 1.7, -1.0], "argmax", False, "best logits 0.30 apart"),
        ([0.0, 2.0, 1.7, -1.0], "sample", False, "best logits 0.30 apart, drawn by chance"),
    ],
)
def test_a_near_tie_of_the_policy_is_named(logits: list[float], mode: str, near: bool, text: str) -> None:
    """The smaller margin counts: that of the reference, or of the other run."""
    sure = [deciding([0.0, 5.0, 0.0, 0.0], mode)(step) for step in REFERENCE]
    close = [deciding(logits, mode)(replace(step, action=R) if step.index == 2 else step) for step in REFERENCE]
    for pair in ((sure, close), (close, sure)):
        found = find_parting(*pair)
        assert found is not None
        assert (found.index, found.near_tie) == (2, near)
        assert str(found).endswith(f"; {text}")


def test_a_policy_without_logits_has_no_tie() -> None:
    found = find_parting(REFERENCE, changed(2, lambda step: replace(step, action=R)))
    assert found == Parting(2, "action", "turn_right instead of turn_left")
    assert not found.near_tie


# --- worlds ---------------------------------------------------------------------------------------------------------


def logged(folder: Path, header: EpisodeHeader, runs: Sequence[Sequence[StepRecord]]) -> Path:
    """Logs of episodes 0, 1, ... in a folder."""
    recorder = Recorder(folder)
    for number, records in enumerate(runs):
        synthetic.play(recorder, replace(header, episode=replace(header.episode, id=str(number))), records)
    recorder.close()
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Two episodes in two simulators, the second of which begins elsewhere, as closed loops do, and in the world."""
    elsewhere = replace(HEADER, episode=replace(HEADER.episode, start_tilt_rad=0.01), robot="habitat-sim")
    other = changed(2, lambda step: replace(step, action=R))
    return [
        logged(tmp_path / "sim", HEADER, [REFERENCE, REFERENCE]),
        logged(tmp_path / "habitat", elsewhere, [REFERENCE, other]),
        logged(tmp_path / "real", HEADER, [REFERENCE, REFERENCE]),
    ]


def compared(folders: Sequence[Path]) -> Worlds:
    scores = [[score_log(log) for log in sorted(folder.glob("*.mcap"))] for folder in folders]
    return compare_worlds([folder.name for folder in folders], scores)


def test_rows_are_named_by_folder_and_log_and_pair_closed_loops(folders: list[Path]) -> None:
    worlds = compared(folders)
    assert [row.name for row in worlds.rows] == [f"real/{log.stem}" for log in sorted(folders[2].glob("*.mcap"))]
    assert [[run and run.parting and run.parting.index for run in row.runs] for row in worlds.rows] == [
        [None, None, None],
        [None, 2, None],
    ]
    assert worlds.totals()["first parted by"] == ["no parting 2", "no parting 1, action 1", ""]
    console = Console(width=120, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    with console.file:
        console.print(table(worlds))
    shown = console.export_text()
    assert [name for name in ("sim", "habitat", "real") if name in shown.splitlines()[0]] == ["sim", "habitat", "real"]
    assert "step 2: turn_right instead of" in shown


def test_an_episode_that_a_world_lacks_is_not_run_and_leaves_the_means(folders: list[Path]) -> None:
    min(folders[1].glob("*.mcap")).unlink()
    worlds = compared(folders)
    assert [[run is None for run in row.runs] for row in worlds.rows] == [[False, True, False], [False, False, False]]
    assert worlds.rows[0].cells()[1] == ["not run"]
    everywhere = worlds.rows[1].runs
    assert all(run is not None and run.steps == 4 for run in everywhere)


def test_a_run_counts_once(folders: list[Path], tmp_path: Path) -> None:
    twice = logged(tmp_path / "again", HEADER, [REFERENCE])
    scores = [[score_log(log) for log in sorted(folder.glob("*.mcap"))] for folder in (twice, folders[2], folders[2])]
    worlds = compare_worlds(["once", "real"], [scores[0], [*scores[1], *scores[2]]])
    assert [row.runs[0] is None for row in worlds.rows] == [False, True, True, True]


def test_the_command_shows_three_columns(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = tmp_path / "gap.json", tmp_path / "gap.html"
    command = ["gap", str(folders[0]), str(folders[2]), "--beside", str(folders[1])]
    assert run_command([*command, "--json", str(files[0]), "--html", str(files[1])]) == 0
    said = capsys.readouterr().out
    assert "turn_right" in said
    assert "first parted by" in said
    found = json.loads(files[0].read_text())["side_by_side"]
    assert [Path(name).name for name in found["names"]] == ["sim", "habitat", "real"]
    assert found["rows"][1]["runs"][1]["parting"]["quantity"] == "action"
    assert "turn_right instead of turn_left" in files[1].read_text()
    assert run_command(["gap", str(folders[0]), str(folders[2])]) == 0
    assert "first parted by" not in capsys.readouterr().out
    assert run_command(["gap", str(folders[0]), str(folders[2]), "--by-episode"]) == 0
    assert "no parting 2" in capsys.readouterr().out
