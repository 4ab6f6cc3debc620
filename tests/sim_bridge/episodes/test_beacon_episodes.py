"""Episodes by beacons: scores are the truth's within the noise, and whatever goes wrong is found, named and logged."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from open_room import Witness, make_task

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import DeviceFault, LocalizationLost
from robot_runtime.hal import Localizer, Robot
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.policies import load_policy
from robot_runtime.records import EndReason, EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import DeviceConfig, RobotContext, build_robot, make_device, read_robot_file
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task

FORWARD, LEFT, RIGHT = Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT

FUSED = "robot_runtime.localization.fused.make_localizer"
BEACONS = "drivers.marvelmind.driver.make_localizer"
HERE = {"x_m": 0.0, "y_m": 0.0, "yaw_deg": 0.0}
TURNED = {"x_m": 0.7, "y_m": -0.4, "yaw_deg": 65.0}
NOISE_M = 0.02
"""Of a fix in x and in y, which the emulator has where nothing else is said."""
ROUGH = {"outlier_probability": 0.05, "dropout_probability": 0.005, "dropout_s": 2.0}


def beacons(**options: Any) -> dict[str, Any]:
    return {"driver": BEACONS, "options": {"beacons_in_map": HERE, **options}}


SOURCES = {
    "fused": DeviceConfig(FUSED, {"absolute": beacons(emulator=ROUGH)}),
    "fused, off the axle, in a turned frame": DeviceConfig(
        FUSED, {"absolute": beacons(emulator=ROUGH, beacons_in_map=TURNED, lever_m=[0.12, -0.05])}
    ),
    "fused pair": DeviceConfig(FUSED, {"absolute": beacons(emulator=ROUGH, pair={"yaw_offset_deg": 40.0})}),
    "pair": DeviceConfig(BEACONS, beacons(pair={"base_m": 0.25})["options"]),
}


POSITIONS = DeviceConfig(BEACONS, beacons(beacons_in_map=TURNED, lever_m=[0.12, -0.05])["options"])
"""One hedgehog alone, off the axle: no headings."""


def by_beacons(
    scene: Scene, task: Task, part: DeviceConfig, referee: DeviceConfig | None = None
) -> tuple[Robot, Localizer]:
    """A noisy simulated robot whose policy goes by a part, its referee by that or another, and the truth."""
    context = RobotContext(scene, task.camera, seed=3)
    path, file = read_robot_file("sim-noisy")
    at_once = {**file.options, "motors": {"type": "ideal"}}  # the noise of the beacons is examined, not of the wheels
    robot = build_robot(replace(file, options=at_once), str(path), context)
    source = make_device(part, Localizer, robot, context, "test")
    judge = source if referee is None else make_device(referee, Localizer, robot, context, "test")
    return replace(robot, localizer=source, referee=judge), robot.referee


class TruthScorer(Subscriber):
    """Scores the same episode by the truth."""

    def __init__(self, truth: Localizer) -> None:
        self._truth = truth
        self.errors_m: list[float] = []

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.scorer = EpisodeScorer(header)

    def on_step(self, record: StepRecord) -> None:
        true = self._truth.at(record.frame.stamp_ns, 1.0)
        self.errors_m.append(record.referee.pose.distance_to(true.pose))
        self.scorer.on_step(replace(record, referee=true))

    def on_episode_end(self, end: EpisodeEnd) -> None:
        self.scorer.on_episode_end(end)


TASKS = {
    "pointnav": (make_task(max_steps=40), Episode("1", "room", SE2(-1.5, -0.4, 0.5), (Goal(1.0, -0.8),))),
    "objectnav": (make_task("objectnav", max_steps=40), Episode("1", "room", SE2(0.5, -1.0, 1.0), (), category="Vase")),
}


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("source", [*SOURCES, "positions"])
def test_scores_by_beacons_are_the_truths_within_their_noise(room: Scene, source: str, kind: str) -> None:
    task, episode = TASKS[kind]
    room = replace(room, view_points={"vase": (SE2(-0.8, -1.2, math.pi), SE2(-1.5, -0.5, -math.pi / 2))})
    positions = source == "positions"  # for the referee alone: they have no headings, which a policy needs
    robot, truth = by_beacons(room, task, SOURCES["fused" if positions else source], POSITIONS if positions else None)
    scorer = TruthScorer(truth)
    with robot, truth, Env(robot, task, room, (scorer,)) as env:
        end = run_episode(env, load_policy("oracle"), episode, seed=0)
        said = env.get_metrics()
    true = scorer.scorer.metrics()
    assert end.reason is EndReason.STOP, "nothing was lost"
    assert said["success"] is True
    assert true["success"] is True
    assert max(scorer.errors_m) <= 4 * NOISE_M
    assert abs(said["distance_to_goal"] - true["distance_to_goal"]) <= 3 * NOISE_M
    # Each step of an unfused source adds its own noise to the way, 1.8 of it where the robot turned on the spot; that
    # is why they are fused.
    more_m = NOISE_M * (2 * end.steps if source in ("pair", "positions") else 3)
    assert said["path_length_m"] == pytest.approx(true["path_length_m"], abs=more_m)
    assert said["spl"] == pytest.approx(true["spl"], abs=more_m / true["path_length_m"])


# --- what goes wrong ------------------------------------------------------------------------------------------------

WAY = [FORWARD] * 4 + [LEFT] * 3 + [FORWARD] * 3 + [RIGHT] * 3 + [FORWARD] * 3 + [RIGHT] * 2
"""18 steps of a second or so; what goes wrong does so from ``FROM_S`` on, after the sixth."""
FROM_S = 8.0
PATIENCE_S = 6.0


@dataclass
class Told:
    """An episode along :data:`WAY` on which something goes wrong."""

    witness: Witness
    errors_m: list[float]
    fault: DeviceFault | None
    steps: int

    @property
    def kinds(self) -> list[str]:
        """Of the events of localization; motion has its own."""
        return [event.kind for event in self.witness.events if event.source != "motion"]

    @property
    def told_of(self) -> set[str]:
        """Without what is expected of good measurements: one in a thousand is rejected."""
        return set(self.kinds) - {"jump_rejected"}

    def seconds(self, kind: str) -> float:
        return next(event.stamp_ns for event in self.witness.events if event.kind == kind) / 1e9


def test_positions_without_headings_are_no_policys(room: Scene) -> None:
    task, episode = TASKS["pointnav"]
    robot, _ = by_beacons(room, task, POSITIONS)
    with robot, Env(robot, task, room) as env, pytest.raises(DeviceFault, match="positions only") as caught:
        env.reset(episode)
    assert "fused" in caught.value.remedy


@pytest.fixture
def drive(room: Scene) -> Callable[..., Told]:
    """Drives along :data:`WAY` by beacons, fused or not, with faults of their emulator."""

    def run(*faults: dict[str, Any], fused: bool = True, **options: Any) -> Told:
        task = make_task(max_steps=40)
        emulator = {"faults": [{"from_s": FROM_S, **fault} for fault in faults]}
        source = beacons(emulator=emulator, **options)
        part = DeviceConfig(FUSED, {"absolute": source}) if fused else DeviceConfig(BEACONS, source["options"])
        robot, truth = by_beacons(room, task, part)
        told = Told(Witness(), [], None, 0)
        with robot, truth:
            env = Env(robot, task, room, (told.witness,), localization_patience_s=PATIENCE_S)
            try:
                env.reset(Episode("1", "room", SE2(-1.5, -0.6, 0.0), (Goal(1.0, -0.6),)))
                for action in WAY:
                    observation = env.step(action)
                    record = told.witness.steps[-1]
                    assert record.pose.stamp_ns == record.frame.stamp_ns, "a step's pose is of its exposure"
                    assert observation["gps"] is not None
                    told.errors_m.append(record.pose.pose.distance_to(truth.at(record.frame.stamp_ns, 1.0).pose))
                env.close()
            except DeviceFault as error:
                told.fault = error
        told.steps = len(told.errors_m)
        return told

    return run


def is_lost(told: Told, kind: str) -> None:
    """The source was doubted, the robot waited, and the episode ended in time; nothing wrong was observed till then."""
    assert kind in told.kinds
    assert isinstance(told.fault, LocalizationLost)
    assert told.witness.ends[-1].reason is EndReason.LOCALIZATION_LOST
    assert "was not found within 6 s" in told.witness.ends[-1].detail
    assert told.kinds.index(kind) < told.kinds.index("lost") < told.kinds.index("paused")
    assert told.steps < len(WAY)


def goes_on(told: Told) -> None:
    assert told.fault is None
    assert told.steps == len(WAY)
    assert max(told.errors_m) <= 0.05


def test_a_gap_of_two_seconds_is_driven_through(drive: Callable[..., Told]) -> None:
    told = drive({"kind": "no_fix", "to_s": FROM_S + 2})
    goes_on(told)
    assert told.told_of == {"no_fix", "fix"}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"kind": "no_fix"}, "no_fix"),
        ({"kind": "frozen"}, "frozen"),
        ({"kind": "repeating"}, "frozen"),
        ({"kind": "scaled", "factor": 1000.0}, "out_of_map"),
    ],
)
def test_what_cannot_be_believed_ends_the_episode(drive: Callable[..., Told], fault: dict[str, Any], kind: str) -> None:
    told = drive(fault)
    is_lost(told, kind)
    assert max(told.errors_m) <= 0.05, "what was told of before was right"


def test_silence_ends_the_episode(drive: Callable[..., Told]) -> None:
    told = drive({"kind": "silent"})
    assert isinstance(told.fault, LocalizationLost)
    assert told.witness.ends[-1].reason is EndReason.LOCALIZATION_LOST
    assert told.kinds[-2:] == ["lost", "paused"]
    assert "for 5.0 s" in [event for event in told.witness.events if event.source != "motion"][-2].detail
    assert max(told.errors_m) <= 0.05


@pytest.mark.parametrize("kind", ["no_fix", "silent", "repeating"])
def test_without_odometry_a_robot_waits_at_once(drive: Callable[..., Told], kind: str) -> None:
    told = drive({"kind": kind, "to_s": FROM_S + 3}, fused=False, pair={})
    assert told.fault is None
    assert told.steps == len(WAY)
    assert max(told.errors_m) <= 4 * NOISE_M
    assert FROM_S < told.seconds("paused") < told.seconds("resumed") < FROM_S + 4


def test_without_odometry_a_robot_does_not_wait_for_ever(drive: Callable[..., Told]) -> None:
    told = drive({"kind": "no_fix"}, fused=False, pair={})
    assert isinstance(told.fault, LocalizationLost)
    assert "hedgehog 11 has no fix" in told.witness.ends[-1].detail
    assert told.kinds == ["no_fix", "paused"]
    assert max(told.errors_m) <= 4 * NOISE_M


def test_a_pause_ends_when_the_robot_is_found_again(drive: Callable[..., Told]) -> None:
    told = drive({"kind": "frozen", "to_s": FROM_S + 8})
    goes_on(told)
    kinds = told.kinds
    assert kinds.index("frozen") < kinds.index("lost") < kinds.index("paused") < kinds.index("resumed")
    assert kinds.index("regained") < kinds.index("resumed")
    assert told.seconds("resumed") - told.seconds("paused") < PATIENCE_S


def test_a_clock_that_goes_back_is_told_and_harms_nothing(drive: Callable[..., Told]) -> None:
    told = drive({"kind": "clock_back"})
    goes_on(told)
    assert told.told_of == {"clock_went_back"}


@pytest.mark.slow
def test_a_moved_anchor_is_told_before_any_pose_goes_by_it(drive: Callable[..., Told]) -> None:
    told = drive({"kind": "moved_anchor", "dx_m": 0.5})
    kinds = told.kinds
    assert kinds.index("jump_rejected") < kinds.index("lost") < kinds.index("anchor_moved")
    moved_ns = told.seconds("anchor_moved") * 1e9
    for record, error_m in zip(told.witness.steps[1:], told.errors_m, strict=True):
        assert error_m <= (0.05 if record.frame.stamp_ns < moved_ns else 0.56)


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [({"kind": "mirrored"}, {"mirrored"}), ({"kind": "scaled", "factor": 0.001}, {"frozen", "scale"})],
)
def test_a_frame_that_is_wrong_from_the_beginning_is_found(
    drive: Callable[..., Told], fault: dict[str, Any], kinds: set[str]
) -> None:
    told = drive({**fault, "from_s": 0.0})
    assert kinds & set(told.kinds)
    assert isinstance(told.fault, LocalizationLost)
    assert told.witness.ends[-1].reason is EndReason.LOCALIZATION_LOST


def test_where_no_episode_begins_the_error_says_why(drive: Callable[..., Told]) -> None:
    told = drive({"kind": "scaled", "factor": 1000.0, "from_s": 0.0})
    assert isinstance(told.fault, LocalizationLost)
    assert told.witness.headers == [], "there is nothing to log: the robot never stood anywhere"
    assert "out_of_map: a position is (" in told.fault.message


@pytest.mark.parametrize("fault", [{"kind": "stranger"}, {"kind": "noisy"}])
def test_what_does_not_concern_the_robot_does_it_no_harm(drive: Callable[..., Told], fault: dict[str, Any]) -> None:
    goes_on(drive(fault))


@pytest.mark.parametrize(
    ("fault", "message"),
    [({"kind": "unplugged"}, "port "), ({"kind": "stranger", "marked": False}, "the hedgehogs 11 and 99")],
)
def test_a_broken_wire_and_a_second_hedgehog_are_faults(
    drive: Callable[..., Told], fault: dict[str, Any], message: str
) -> None:
    told = drive(fault)
    assert told.witness.ends[-1].reason is EndReason.FAULT
    assert message in told.witness.ends[-1].detail
    assert max(told.errors_m) <= 0.05
