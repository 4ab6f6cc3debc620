"""A policy drives the simulator of another simulator: an ordinary log comes of it, which scores as every other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from habitat_double import World, habitat_sim
from raising import raises_naming

from robot_runtime.actions import timed
from robot_runtime.actions.timed import Control, Decision, VelocityControl, WaypointControl
from robot_runtime.errors import SceneError
from robot_runtime.policies import load_policy, load_source
from robot_runtime.policy import Observation, Policy, PolicySource
from robot_runtime.policy import World as PolicyWorld
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeHeader
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import Task
from sim_bridge.replay.backends.base import SimulatorFailed, UnsupportedBySimulator
from sim_bridge.replay.backends.habitat import HabitatBackend, HabitatOptions
from sim_bridge.replay.closed_loop import run_closed_loop, run_external_episode
from sim_bridge.replay.results import ClosedLoop, Note

F, L = synthetic.FORWARD, synthetic.LEFT
SENSORS = ("rgb", "depth", "gps", "compass", "pointgoal")
Run = Callable[..., tuple[ClosedLoop, tuple[Note, ...]]]


class Sequence(Policy):
    """Decides what it is told to, and then fails."""

    name = "sequence"

    def __init__(self, *decisions: Decision) -> None:
        self.decisions = decisions

    def reset(self, task: Task, seed: int, world: PolicyWorld | None = None) -> None:
        self.coming = iter(self.decisions)

    def act(self, observation: Observation) -> Decision:
        return next(self.coming)


FLAT = synthetic.scene()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make(tmp_path: Path, world: World) -> Iterator[Callable[..., HabitatBackend]]:
    """Makes simulators in habitat-sim's double."""
    (tmp_path / "flat.glb").touch()
    simulators: list[HabitatBackend] = []

    def make(header: EpisodeHeader, scene: Scene | None = FLAT) -> HabitatBackend:
        options = HabitatOptions(scene=str(tmp_path / "flat.glb"))
        simulators.append(HabitatBackend(habitat_sim(world), header, scene, True, options, "--into habitat"))
        return simulators[-1]

    yield make
    for simulator in simulators:
        simulator.close()


@pytest.fixture
def run(tmp_path: Path, make: Callable[..., HabitatBackend]) -> Run:
    """Runs a policy from the start of a log of two steps."""

    def run(
        policy: Policy, header: EpisodeHeader | None = None, scene: Scene | None = FLAT
    ) -> tuple[ClosedLoop, tuple[Note, ...]]:
        header = header or synthetic.header(synthetic.pointnav_task(sensors=SENSORS))
        recorder = Recorder(tmp_path / "logs")
        synthetic.play(recorder, header, synthetic.drive(header, [F, L]))
        recorder.close()
        with LogReader(min((tmp_path / "logs").glob("*.mcap"))) as log:
            records = list(log.steps(images=False))
            return run_closed_loop(log, records, make(header, scene), policy, tmp_path / "closed")

    return run


def test_an_agent_reaches_the_logs_goal(run: Run):
    closed, notes = run(load_policy("goal-follower"))
    assert notes == ()
    assert (closed.end_replayed, closed.seed) == (EndReason.STOP, 3)
    assert closed.metrics_replayed["success"] is True
    assert closed.metrics_replayed["spl"] == pytest.approx(1.0, abs=0.05)
    assert (closed.steps_recorded, closed.same_actions) == (2, 1)  # forward, as the log; then it does not turn
    with LogReader(Path(closed.log)) as log:
        steps = list(log.steps())  # images are the policy's, bit for bit
        assert (log.header.robot, log.header.agent) == ("habitat-sim 0.3.3", "goal-follower")
        assert steps[1].result is not None
        assert steps[1].result.measured.forward_m == pytest.approx(0.25, abs=1e-4)
        assert steps[1].observation["gps"][0] == pytest.approx(0.25, abs=1e-4)


def test_the_logs_own_policy_keeps_the_name_that_the_log_gave_it(run: Run):
    source = PolicySource("goal-follower", {"stop_distance_m": "2.9"})
    header = synthetic.header(synthetic.pointnav_task(sensors=SENSORS), policy=source, agent="careful")
    assert run(load_source(source), header)[0].agent == "careful"
    assert run(load_source(PolicySource("goal-follower")), header)[0].agent == "goal-follower"


def test_a_policy_that_fails_leaves_a_log_that_says_so(run: Run):
    closed, notes = run(Sequence(F, F))
    assert (closed.end_replayed, closed.steps_replayed) == (EndReason.FAULT, 2)
    assert any("StopIteration" in note.message for note in notes)


def test_an_action_that_the_simulator_does_not_have_ends_it_likewise(run: Run):
    waypoints = WaypointControl((-1.0, 1.0), (-3.0, 3.0), (-1.0, 1.0), (0.0, 5.0), 0.1, 0.3, 1.0, 1.0, 1.0)
    task = synthetic.pointnav_task(sensors=SENSORS, control=Control((-1.0, 1.0), waypoint=waypoints))
    closed, notes = run(Sequence(F, timed.waypoint(0.5, 0.0, 0.0, 0.0, 3.0)), synthetic.header(task))
    assert (closed.end_replayed, closed.steps_replayed) == (EndReason.FAULT, 1)
    assert any("waypoint_control" in note.message for note in notes)


def test_velocities_are_steps_too(run: Run):
    control = Control((-1.0, 1.0), VelocityControl((0.0, 0.5), (-2.0, 2.0), (-1.0, 1.0), time_step_s=1.0))
    task = synthetic.pointnav_task(sensors=SENSORS, control=control, max_seconds=0.9)
    closed, _ = run(Sequence(*[timed.velocity(0.5, 0.0, 0.2, 0.5)] * 5), synthetic.header(task))
    assert (closed.end_replayed, closed.steps_replayed) == (EndReason.MAX_SECONDS, 2)
    with LogReader(Path(closed.log)) as log:
        last = list(log.steps(images=False))[-1]
    assert last.command == timed.velocity(0.5, 0.0, 0.2, 0.5)
    assert last.head.tilt_rad == pytest.approx(0.2)
    assert math.isnan(last.base.battery_v)  # there is none


def test_an_episode_ends_with_the_tasks_steps(run: Run):
    task = synthetic.pointnav_task(sensors=SENSORS, max_steps=3)
    closed, _ = run(Sequence(L, L, L, L), synthetic.header(task))
    assert (closed.end_replayed, closed.steps_replayed) == (EndReason.MAX_STEPS, 3)


def test_an_agent_with_ground_truth_runs_by_the_simulators_pose(run: Run):
    closed, notes = run(load_policy("oracle"))
    assert not notes
    assert closed.end_replayed is EndReason.STOP
    assert closed.metrics_replayed["success"]


def test_an_exception_of_the_library_ends_it_with_its_log_complete(run: Run, world: World):
    world.fails["get_sensor_observations"] = RuntimeError("context lost")
    with raises_naming(SimulatorFailed, "habitat-sim 0.3.3", "context lost"):
        run(Sequence(F))
    del world.fails["get_sensor_observations"]
    world.fails["act"] = RuntimeError("context lost")
    closed, notes = run(Sequence(L, F))
    assert (closed.end_replayed, closed.steps_replayed) == (EndReason.FAULT, 0)
    assert any("habitat-sim 0.3.3: Agent.act: RuntimeError: context lost" in note.message for note in notes)
    with LogReader(Path(closed.log)) as log:
        assert log.complete


def test_what_it_cannot_run_is_said(run: Run):
    with raises_naming(SceneError, "scene", "--scene"):
        run(Sequence(F), scene=None)


def test_object_ids_are_nothing_that_it_can_show(make: Callable[..., HabitatBackend]):
    header = synthetic.header(synthetic.objectnav_task())
    header = replace(header, task=replace(header.task, sensors=("semantic", "objectgoal")))
    with raises_naming(UnsupportedBySimulator, "object ids", "habitat-sim 0.3.3", "sensor semantic"):
        run_external_episode(make(header), header, synthetic.scene(), header.episode, Sequence(F))
