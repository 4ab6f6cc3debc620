"""A policy in the simulator from the recorded start; and what moves objects, in two phases, there and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scripted import TASK, F, L, R, moved, record, replayed, rewritten
from things_room import CAMERA, CRATE, MUG, make_scene, on_floor

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.policies import load_source
from robot_runtime.policy import PolicySource
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason, StepRecord
from robot_runtime.scenes.objects import GrabOutcome
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.eqa.kind import Inquiry, Question
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.tasks.episode import Episode, Goal, RearrangedObject
from robot_runtime.tasks.task import Success, Task
from sim_bridge.replay.action_replay import replay_actions
from sim_bridge.replay.backends.mujoco import factory
from sim_bridge.replay.closed_loop import run_closed_loop
from sim_bridge.replay.results import PARTS, read_replay, write_replay
from sim_bridge.replay.tables import tiles

AGENT = """
from robot_runtime.policy import Policy

class Homing(Policy):
    name = "homing"
    needs = ("pointgoal_with_gps_compass",)

    def reset(self, task, seed, world=None):
        self.left = 30

    def act(self, seen):
        from robot_runtime.actions.discrete import Action
        distance_m, azimuth_rad = seen["pointgoal_with_gps_compass"].tolist()
        if distance_m < 0.3:
            return Action.STOP
        if abs(azimuth_rad) > 0.3:
            return Action.TURN_LEFT if azimuth_rad > 0 else Action.TURN_RIGHT
        return Action.MOVE_FORWARD
"""


@pytest.fixture
def homing(tmp_path: Path) -> PolicySource:
    (tmp_path / "homing.py").write_text(AGENT, encoding="utf-8")
    return PolicySource(f"{tmp_path / 'homing.py'}:Homing")


@pytest.mark.slow
def test_the_policy_runs_from_the_recorded_start(room: Scene, homing: PolicySource, tmp_path: Path) -> None:
    """It turns right thrice, as the script did, and reaches the goal, which the script did not."""
    (log,) = record(tmp_path / "real", room, [[R, F, L, F]])
    (replay,) = replayed([log], parts=("closed",), policy=homing, out=tmp_path / "out")
    assert replay.notes == ()
    closed = replay.closed_loop
    assert closed is not None
    assert (closed.agent, closed.seed) == ("homing", 0)
    assert (closed.metrics_recorded["success"], closed.metrics_replayed["success"]) == (False, True)
    assert (closed.end_recorded, closed.end_replayed) == (EndReason.STOP, EndReason.STOP)
    assert closed.steps_recorded == 5
    with LogReader(Path(closed.log)) as made:
        steps = list(made.steps())
        assert made.complete
        assert made.header.policy is not None
        assert made.header.scene.digest == replay.scene.replayed_digest
    assert len(steps) == closed.steps_replayed + 1
    assert steps[0].referee.pose == SE2()
    assert steps[-1].frame.rgb.any()
    taken = [step.action for step in steps[1:]]
    assert closed.same_actions == next(
        i for i, pair in enumerate(zip([R, F, L, F], taken, strict=False)) if len({*pair}) > 1
    )
    write_replay(tmp_path / "r.json", replay)
    assert read_replay(tmp_path / "r.json") == replay
    # Once more: the same, in place of what was there.
    (again,) = replayed([log], parts=("closed",), policy=homing, out=tmp_path / "out")
    assert again.closed_loop == closed


@pytest.mark.slow
def test_a_start_beside_an_obstacle_is_moved_and_a_twins_end_is_told(
    room: Scene, homing: PolicySource, tmp_path: Path
) -> None:
    (log,) = record(tmp_path / "real", room, [[F]], starts=[SE2(2.8, 0.0, 3.0)])
    off = rewritten(log, tmp_path / "off", lambda step: moved(step, x_m=0.06))
    silent = {"localizer": {"dropout_probability": 0.004, "dropout_s": 60.0}}
    (replay,) = replayed([off], parts=("closed",), policy=homing, out=tmp_path / "out", twin_options=silent)
    notes = [note.message for note in replay.notes]
    assert replay.closed_loop is not None
    assert replay.closed_loop.end_replayed is EndReason.LOCALIZATION_LOST
    assert any("from the recorded start; that is not free" in note for note in notes)
    assert any("the episode in the simulator was ended" in note for note in notes)


def test_without_a_policy_there_is_no_closed_loop(room: Scene, tmp_path: Path) -> None:
    (log,) = record(tmp_path / "real", room, [[F]])
    (replay,) = replayed([log], parts=("open", "closed"), out=tmp_path / "out")
    assert (replay.open_loop, replay.closed_loop) == (None, None)
    (note,) = replay.notes
    assert "its policy 'script'" in note.message
    assert "--policy" in note.remedy
    gone = PolicySource("gone.py:Agent")
    (replay,) = replayed([log], parts=("open", "closed"), policy=gone, out=tmp_path / "out")
    assert (replay.open_loop, replay.closed_loop) == (None, None)
    assert [note.part for note in replay.notes] == ["policy"]
    assert not (tmp_path / "out").exists()


# --- words ----------------------------------------------------------------------------------------------------------

READER = """
from robot_runtime.actions.discrete import Action
from robot_runtime.policy import Policy

class Reader(Policy):
    name = "reader"

    def reset(self, task, seed, world=None):
        self.left = [Action.TURN_LEFT, Action.MOVE_FORWARD, Action.STOP]

    def act(self, seen):
        assert "left" in str(seen["question" if "question" in seen else "instruction"])
        return self.left.pop(0)

    def answer(self, seen):
        return "red"
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["eqa", "vln"])
def test_routes_and_questions_are_asked_again(kind: str, room: Scene, tmp_path: Path) -> None:
    """Of both kinds of task all four parts are done; who was silent in the log, and answers now, is found out."""
    (tmp_path / "reader.py").write_text(READER, encoding="utf-8")
    sensor, success = ("question", Success("answer")) if kind == "eqa" else ("instruction", TASK.success)
    task = replace(TASK, kind=kind, sensors=("rgb", "depth", sensor), success=success)
    episode = replace(
        Episode("0", room.name, SE2(), (Goal(1.0, -1.0),)),
        details=Inquiry(Question("what is left of the door?", "red", "color"))
        if kind == "eqa"
        else Route(Instruction("turn left and go on"), ((0.0, 0.0, 0.0), (0.2, 0.2, 0.0))),
    )
    (log,) = record(tmp_path / "real", room, [[L, F, Action.STOP]], task, episode=episode)
    policy = PolicySource(f"{tmp_path / 'reader.py'}:Reader")
    (replay,) = replayed([log], parts=PARTS, policy=policy, out=tmp_path / "out")
    assert replay.notes == ()
    assert None not in (replay.pose, replay.action, replay.open_loop, replay.closed_loop)
    assert replay.open_loop is not None
    assert replay.closed_loop is not None
    assert (replay.open_loop.agreement, replay.closed_loop.same_actions) == (1.0, 3)
    assert replay.open_loop.answer_same is (False if kind == "eqa" else None)
    assert ("answer now" in [tile.label for tile in tiles(replay)]) is (kind == "eqa")
    scores = replay.closed_loop.metrics_recorded, replay.closed_loop.metrics_replayed
    assert [score["success"] for score in scores] == ([False, True] if kind == "eqa" else [False, False])
    assert scores[0].get("ndtw") == pytest.approx(scores[1].get("ndtw"))


# --- objects and phases ---------------------------------------------------------------------------------------------

TIDY = Task(
    name="tidy",
    kind="rearrangement",
    source="",
    actions=(Action.STOP, F, L, R, Action.GRAB_RELEASE),
    magnitudes=TASK.magnitudes,
    sensors=("depth",),
    camera=CAMERA,
    robot_radius_m=0.18,
    max_steps=50,
    success=Success("objects", when="end"),
    settings=Rearrangement("experience", (0.5, 0.57), 1.5, max_translation_m=0.3, walkthrough_steps=3),
)


@pytest.mark.slow
def test_two_phases_objects_and_the_hand_are_replayed(tmp_path: Path) -> None:
    """A mug is taken from the table, and a box is pushed: both end where they ended, from each phase's own start."""
    box = replace(CRATE, id="box", center=(-1.0, 0.0, 0.1), size=(0.2, 0.2, 0.2))
    scene = make_scene(tmp_path, *make_scene(tmp_path).objects[:2], box)
    things = (RearrangedObject("mug", MUG.pose, on_floor(MUG, -0.5, 1.0)),)
    episode = Episode("0", scene.name, SE2(), (Goal(1.0, 0.0),), details=Layout(objects=things))
    script = [F, L, Action.STOP, Action.GRAB_RELEASE, *[L] * 6, F, F, F, F, Action.GRAB_RELEASE]
    (log,) = record(tmp_path / "real", scene, [script], TIDY, episode=episode)
    for images in (False, True):
        with LogReader(log) as reader, factory("sim")(reader.header, scene, images, {}, "test") as simulator:
            records = list(reader.steps(images=False))
            action, notes = replay_actions(reader, records, simulator, images)
        assert notes == ()
        assert {record.state.phase for record in records} == {"walkthrough", "unshuffle"}
        grabs = [step.grab_recorded for step in action.steps if step.grab_recorded is not None]
        assert grabs[0] is GrabOutcome.GRABBED
        assert [step.grab_replayed for step in action.steps if step.grab_replayed is not None] == grabs
        assert (action.largest_error_m, action.divergence) == (pytest.approx(0, abs=1e-9), None)
        assert max(step.objects_m or 0.0 for step in action.steps) == pytest.approx(0, abs=1e-9)
        assert all(step.image is not None and step.image.depth_identical for step in action.steps) or not images
        assert sum(step.difference is None for step in action.steps) == 2

    def shifted(step: StepRecord) -> StepRecord:
        return moved(step, y_m=0.04) if step.state.phase == "unshuffle" else step

    with (
        LogReader(rewritten(log, tmp_path / "shifted", shifted)) as reader,
        factory("sim")(reader.header, scene, False, {}, "test") as simulator,
    ):
        action, notes = replay_actions(reader, list(reader.steps(images=False)), simulator, forced=True)
    begins = next(step for step in action.steps if step.phase == "unshuffle")
    assert begins.replayed.y_m == pytest.approx(0.04, abs=1e-9)
    assert [note.message.split(":")[0] for note in notes] == [
        "3 actions are not replayed from the recorded pose before them"
    ]


TURNING = """
from robot_runtime.actions.discrete import Action
from robot_runtime.policy import Policy

class Turning(Policy):
    name = "turning"

    def reset(self, task, seed, world=None):
        self.left = [Action.TURN_LEFT, Action.STOP, Action.TURN_RIGHT]

    def act(self, seen):
        return self.left.pop(0) if self.left else Action.STOP
"""


@pytest.mark.slow
def test_a_policy_begins_its_second_phase_where_the_recorded_one_did(tmp_path: Path) -> None:
    """An operator put the robot back, 4 cm beside the start of the episode."""
    (tmp_path / "turning.py").write_text(TURNING, encoding="utf-8")
    scene = make_scene(tmp_path)
    things = (RearrangedObject("mug", MUG.pose, on_floor(MUG, -0.5, 1.0)),)
    episode = Episode("0", scene.name, SE2(), (Goal(1.0, 0.0),), details=Layout(objects=things))
    (log,) = record(tmp_path / "real", scene, [[L, Action.STOP, L]], TIDY, episode=episode)
    aside = rewritten(log, tmp_path / "aside", lambda s: moved(s, y_m=0.04) if s.state.phase == "unshuffle" else s)
    policy = load_source(PolicySource(f"{tmp_path / 'turning.py'}:Turning"))
    with LogReader(aside) as reader, factory("sim")(reader.header, scene, True, {}, "test") as simulator:
        records = list(reader.steps(images=False))
        closed, notes = run_closed_loop(reader, records, simulator, policy, tmp_path / "out")
    assert notes == ()
    with LogReader(Path(closed.log)) as made:
        steps = list(made.steps(images=False))
    first, second = (next(s for s in steps if s.state.phase == phase) for phase in ("walkthrough", "unshuffle"))
    assert first.referee.pose == SE2()
    assert second.referee.pose.y_m == pytest.approx(0.04, abs=1e-9)
