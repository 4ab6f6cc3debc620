"""Fused poses of an imagined drive: what is published, and every way in which a source can be wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from raising import raises_naming

from drivers.fake.driver import make_robot
from robot_runtime.common.clock import NS_PER_S, SimulatedClock
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import ConfigError, NotConnected, StaleData
from robot_runtime.hal import LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.hal.events import Event
from robot_runtime.hal.pose_health import Bounds
from robot_runtime.localization.fused import FusedLocalizer, FusedOptions
from robot_runtime.robots.loader import RobotContext, load_robot
from tests.benchmarks.runtime.synthetic_drives import (
    Beacons,
    Drive,
    ReplayedLocalizer,
    make_drive,
    measure,
    odometry_of,
)

CLEAN = Beacons(outliers=0.0, dropouts_per_min=0.0)
POSES = replace(CLEAN, noise_deg=1.0)

Arrivals = Sequence[tuple[int, PoseEstimate]]


@dataclass
class Story:
    """Poses of a drive that were published, and those that were told."""

    drive: Drive
    poses: list[PoseEstimate]
    events: list[Event]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def off_m(self, pose: PoseEstimate) -> float:
        return self.drive.at(pose.stamp_ns).distance_to(pose.pose)

    def lost_s(self) -> float:
        """For how long the published poses said so."""
        return sum(b.stamp_ns - a.stamp_ns for a, b in pairwise(self.poses) if a.status is PoseStatus.LOST) / NS_PER_S

    def ok(self) -> list[PoseEstimate]:
        return [pose for pose in self.poses if pose.status is PoseStatus.OK]


def tell(
    drive: Drive,
    arrivals: Arrivals,
    options: FusedOptions | None = None,
    *,
    placed: bool = True,
    bounds: Bounds | None = None,
    odometry: Arrivals | None = None,
    poll_s: float = 0.1,
) -> Story:
    """Ask a fused localizer every ``poll_s`` until the drive is over."""
    clock = SimulatedClock(10_000_000)
    wheels = ReplayedLocalizer(clock, LocalizerInfo("odometry", "odom", 50), odometry or odometry_of(drive))
    source = ReplayedLocalizer(clock, LocalizerInfo("beacons", "map", 8), arrivals)
    poses: list[PoseEstimate] = []
    events: list[Event] = []
    with FusedLocalizer(clock, wheels, source, options, bounds) as fused:
        clock.sleep_until(drive.stamps_ns[0])
        if placed:
            fused.expect(drive.truth[0], 0.05, math.radians(5))
        mark = 0
        while clock.now_ns() < drive.stamps_ns[-1]:
            clock.sleep(poll_s)
            arrived = fused.arrivals(mark)
            mark = arrived.mark
            poses.extend(arrived.estimates)
            events.extend(arrived.events)
    return Story(drive, poses, events)


def bend(arrivals: Arrivals, how: Callable[[SE2], SE2], after_ns: int = 0) -> list[tuple[int, PoseEstimate]]:
    """The same measurements with other poses, from an instant on."""
    return [(at, replace(e, pose=how(e.pose)) if e.stamp_ns >= after_ns else e) for at, e in arrivals]


# --- what is published ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("poll_s", [0.03, 1.7])
def test_it_is_near_the_truth_and_never_jumps(poll_s: float) -> None:
    drive = make_drive(40, 7)
    story = tell(drive, measure(drive, Beacons(), 7), poll_s=poll_s)
    late = [pose for pose in story.poses if pose.stamp_ns > 4 * NS_PER_S]
    assert math.sqrt(np.mean([story.off_m(pose) ** 2 for pose in late])) < 0.015
    assert story.lost_s() < 0.3, "until the first measurement"
    odometry = dict(zip(drive.stamps_ns, drive.odometry, strict=True))
    for before, after in pairwise(story.poses):
        moved = odometry[after.stamp_ns].relative_to(odometry[before.stamp_ns])
        assert (before.pose @ moved).distance_to(after.pose) <= 0.05
    stamps = [pose.stamp_ns for pose in story.poses]
    assert set(story.kinds()) <= {"jump_rejected"}
    assert stamps == [stamp_ns for stamp_ns in drive.stamps_ns if stamps[0] <= stamp_ns <= stamps[-1]]


def test_a_wrong_start_is_corrected_smoothly() -> None:
    drive = make_drive(6, 1)
    wrong = replace(drive, truth=[drive.truth[0] @ SE2(0.12, 0.0, 0.0), *drive.truth[1:]])
    story = replace(tell(wrong, measure(drive, CLEAN, 1)), drive=drive)
    steps = [a.pose.distance_to(b.pose) for a, b in pairwise(story.poses[:45])]  # it stands still for a second
    assert max(steps) <= 0.05
    assert story.off_m(story.poses[0]) > 0.1
    assert story.off_m(story.poses[45]) < 0.05
    for pose in story.poses:
        assert np.linalg.eigvalsh(pose.covariance).min() > -1e-12
    assert story.poses[5].covariance[0, 0] > story.poses[45].covariance[0, 0]


def test_at_is_interpolated_and_waits_for_odometry() -> None:
    drive = make_drive(10, 2)
    clock = SimulatedClock(10_000_000)
    wheels = ReplayedLocalizer(clock, LocalizerInfo("odometry", "odom", 50), odometry_of(drive, latency_s=0.05))
    source = ReplayedLocalizer(clock, LocalizerInfo("beacons", "map", 8), measure(drive, POSES, 2))
    with FusedLocalizer(clock, wheels, source) as fused:
        clock.sleep(4.0)
        now_ns = clock.now_ns()
        estimate = fused.at(now_ns - 1, timeout_s=0.2)
        assert estimate.stamp_ns == now_ns - 1
        assert clock.now_ns() > now_ns
        assert drive.at(estimate.stamp_ns).distance_to(estimate.pose) < 0.04
        assert abs(wrap_angle(drive.at(estimate.stamp_ns).yaw_rad - estimate.pose.yaw_rad)) < 0.03
        with raises_naming(StaleData, "fused beacons"):
            fused.at(clock.now_ns() + NS_PER_S, timeout_s=0.1)
    with pytest.raises(NotConnected):
        fused.latest(1.0)


def test_a_start_without_heading_is_found_by_moving() -> None:
    drive = make_drive(20, 4)
    story = tell(drive, measure(drive, CLEAN, 4), placed=False)
    first = story.poses[0]
    moved_m = drive.truth[0].distance_to(drive.at(first.stamp_ns))
    assert 0.1 < moved_m < 1.0
    late = [pose for pose in story.ok() if pose.stamp_ns > first.stamp_ns + 5 * NS_PER_S]
    for pose in late:
        assert story.off_m(pose) < 0.05
        assert abs(wrap_angle(drive.at(pose.stamp_ns).yaw_rad - pose.pose.yaw_rad)) < math.radians(5)


def test_before_it_moved_it_says_why_it_knows_nothing() -> None:
    drive = make_drive(1, 0)
    clock = SimulatedClock(10_000_000)
    wheels = ReplayedLocalizer(clock, LocalizerInfo("odometry", "odom", 50), odometry_of(drive))
    source = ReplayedLocalizer(clock, LocalizerInfo("beacons", "map", 8), measure(drive, CLEAN, 0))
    with FusedLocalizer(clock, wheels, source) as fused:
        clock.sleep(0.9)
        with raises_naming(StaleData, "beacons", "0 measurements"):
            fused.latest(1.0)
        clock.sleep(1.0)
        with raises_naming(StaleData, "beacons", "heading", "half a meter"):
            fused.latest(1.0)


def test_when_a_source_forgets_so_does_it() -> None:
    """The robot was put somewhere else."""
    drive = make_drive(10, 2)
    clock = SimulatedClock(10_000_000)
    wheels = ReplayedLocalizer(clock, LocalizerInfo("odometry", "odom", 50), odometry_of(drive))
    source = ReplayedLocalizer(clock, LocalizerInfo("beacons", "map", 8), measure(drive, POSES, 2))
    with FusedLocalizer(clock, wheels, source) as fused:
        clock.sleep(4.0)
        mark = fused.arrivals().mark
        source.forget()
        clock.sleep(0.05)
        again = fused.arrivals(mark)
        assert again.restarted
        clock.sleep(1.0)
        after = fused.arrivals(again.mark)
        assert not after.restarted
        assert after.estimates


# --- bad input ------------------------------------------------------------------------------------------------------


def test_outliers_are_rejected_and_told_of() -> None:
    drive = make_drive(20, 3)
    arrivals = measure(drive, CLEAN, 3)
    wild = [(at, replace(e, pose=e.pose @ SE2(0.9, 0, 0)) if i % 10 == 9 else e) for i, (at, e) in enumerate(arrivals)]
    story = tell(drive, wild)
    assert story.kinds() == ["jump_rejected"] * len(wild[9::10])
    assert all("0." in event.detail and event.detail.endswith("m off") for event in story.events)
    assert story.lost_s() < 0.3, "until the first measurement"
    assert max(story.off_m(pose) for pose in story.poses) < 0.06


def test_a_silent_source_is_bridged_for_a_while_then_the_robot_is_lost_until_it_speaks_again() -> None:
    drive = make_drive(30, 5)
    gap = (10 * NS_PER_S, 22 * NS_PER_S)
    arrivals = [(at, e) for at, e in measure(drive, POSES, 5) if not gap[0] < e.stamp_ns < gap[1]]
    story = tell(drive, arrivals)
    assert story.kinds() == ["lost", "regained"]
    lost, regained = story.events
    assert lost.stamp_ns - gap[0] == pytest.approx(5 * NS_PER_S, abs=NS_PER_S // 4)
    assert re.search(r"beacons.* for 5", lost.detail)
    assert regained.stamp_ns == pytest.approx(gap[1], abs=NS_PER_S // 2)
    assert all(story.off_m(pose) < 0.1 for pose in story.ok())


def test_a_source_that_says_it_has_no_fix_is_not_believed() -> None:
    drive = make_drive(30, 5)
    arrivals = [
        (at, replace(e, status=PoseStatus.LOST, pose=SE2()) if 10 * NS_PER_S < e.stamp_ns < 18 * NS_PER_S else e)
        for at, e in measure(drive, POSES, 5)
    ]
    story = tell(drive, arrivals)
    assert story.kinds() == ["no_fix", "lost", "fix", "regained"]
    assert all(story.off_m(pose) < 0.1 for pose in story.ok())


def test_uncertainty_alone_makes_it_lost() -> None:
    drive = make_drive(30, 5)
    arrivals = [(at, e) for at, e in measure(drive, POSES, 5) if e.stamp_ns < 8 * NS_PER_S]
    story = tell(drive, arrivals, FusedOptions(lost_after_s=1000.0, max_std_m=0.05, max_std_deg=6.0))
    assert story.kinds() == ["lost"]
    assert " 0.0" in story.events[0].detail


@pytest.mark.slow
@pytest.mark.parametrize("beacons", [CLEAN, POSES], ids=["positions", "poses"])
def test_a_moved_anchor_is_believed_after_being_lost(beacons: Beacons) -> None:
    """The referee learns that from there on positions are others."""
    drive = make_drive(40, 6)
    shift = SE2(0.6, -0.5, 0.0)
    arrivals = bend(measure(drive, beacons, 6), lambda p: SE2(p.x_m + 0.6, p.y_m - 0.5, p.yaw_rad), 15 * NS_PER_S)
    story = tell(drive, arrivals)
    assert story.kinds() == ["jump_rejected", "lost", "anchor_moved", "regained"]
    assert float(story.events[2].detail.split(" m ")[0].split()[-1]) == pytest.approx(0.78, abs=0.05)
    assert 0.5 < story.lost_s() < 4
    for pose in story.ok():
        true = drive.at(pose.stamp_ns)
        if pose.stamp_ns >= story.events[3].stamp_ns:
            true = SE2(true.x_m + shift.x_m, true.y_m + shift.y_m, true.yaw_rad)
        assert true.distance_to(pose.pose) < 0.12


def test_garbage_is_not_an_anchor() -> None:
    drive = make_drive(30, 6)
    random = np.random.default_rng(1)
    garbage = bend(
        measure(drive, CLEAN, 6), lambda p: SE2(*random.uniform(-5, 5, 2).tolist(), p.yaw_rad), 10 * NS_PER_S
    )
    story = tell(drive, garbage)
    assert "anchor_moved" not in story.kinds()
    assert "lost" in story.kinds()
    assert story.poses[-1].status is PoseStatus.LOST
    assert all(story.off_m(pose) < 0.1 for pose in story.ok() if pose.stamp_ns < 11 * NS_PER_S)


@pytest.mark.parametrize("beacons", [CLEAN, POSES], ids=["positions", "poses"])
def test_a_frozen_source_is_recognized_although_its_stamps_are_fresh(beacons: Beacons) -> None:
    drive = make_drive(40, 8)
    since_ns, until_ns = 12 * NS_PER_S, 24 * NS_PER_S
    arrivals = measure(drive, beacons, 8)
    held = [e for _, e in arrivals if e.stamp_ns < since_ns][-1].pose
    frozen = [(at, replace(e, pose=held) if since_ns <= e.stamp_ns < until_ns else e) for at, e in arrivals]
    story = tell(drive, frozen)
    kinds = [kind for kind in story.kinds() if kind != "jump_rejected"]
    assert kinds == ["frozen", "lost", "regained"]
    event = story.events[story.kinds().index("frozen")]
    assert " m" in event.detail
    assert event.stamp_ns < since_ns + 5 * NS_PER_S
    assert all(story.off_m(pose) < 0.15 for pose in story.ok())


def test_a_robot_at_rest_is_not_frozen() -> None:
    drive = make_drive(0, 0)
    samples = [1_000_000_000 + i * 20_000_000 for i in range(500)]
    still = Drive(samples, [drive.truth[0]] * 500, [SE2()] * 500, [False] * 500, [0])
    arrivals = [(t, PoseEstimate(t, drive.truth[0], "map", POSES.covariance)) for t in samples[::6]]
    assert tell(still, arrivals).events == []


@pytest.mark.parametrize("beacons", [CLEAN, POSES], ids=["positions", "poses"])
@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_a_mirrored_frame_is_named(beacons: Beacons, outliers: float) -> None:
    drive = make_drive(60, 9)
    arrivals = measure(drive, replace(beacons, outliers=outliers), 9)
    story = tell(drive, bend(arrivals, lambda p: SE2(-p.x_m, p.y_m, math.pi - p.yaw_rad)), placed=False)
    assert "mirrored" in story.kinds()
    assert "turn the wrong way" in story.events[story.kinds().index("mirrored")].detail
    assert not story.poses or story.poses[-1].status is PoseStatus.LOST


@pytest.mark.parametrize(
    ("factor", "hint"), [(1000.0, "millimeters are taken for meters"), (0.001, "meters are taken")]
)
@pytest.mark.parametrize("placed", [True, False])
def test_meters_and_millimeters_are_told_apart(factor: float, hint: str, placed: bool) -> None:
    drive = make_drive(40, 9)
    arrivals = bend(measure(drive, CLEAN, 9), lambda p: SE2(p.x_m * factor, p.y_m * factor, p.yaw_rad))
    story = tell(drive, arrivals, placed=placed)
    assert "scale" in story.kinds()
    assert hint in story.events[story.kinds().index("scale")].detail
    assert not story.poses or story.poses[-1].status is PoseStatus.LOST


@pytest.mark.parametrize("after_s", range(3, 12))
def test_a_jump_is_no_scale(after_s: int) -> None:
    drive = make_drive(20, 11)
    moved = bend(measure(drive, POSES, 11), lambda p: SE2(p.x_m + 0.5, p.y_m, p.yaw_rad), after_s * NS_PER_S)
    assert "scale" not in tell(drive, moved).kinds()


def test_positions_outside_the_map_are_refused_at_once() -> None:
    drive = make_drive(10, 9)
    arrivals = bend(measure(drive, POSES, 9), lambda p: SE2(p.x_m * 1000, p.y_m * 1000, p.yaw_rad))
    story = tell(drive, arrivals, placed=False, bounds=(-5.0, -5.0, 15.0, 15.0))
    assert story.kinds() == ["out_of_map"]
    assert "the map reaches from (-5.00, -5.00) to (15.00, 15.00)" in story.events[0].detail
    assert not story.poses


def test_time_that_goes_back_is_told_of_and_what_comes_with_it_refused() -> None:
    drive = make_drive(30, 10)
    jumped = [
        (at, replace(e, stamp_ns=e.stamp_ns - 60 * NS_PER_S) if 10 * NS_PER_S < at < 14 * NS_PER_S else e)
        for at, e in measure(drive, POSES, 10)
    ]
    story = tell(drive, jumped)
    assert story.kinds() == ["clock_went_back"]
    assert "older than the newest" in story.events[0].detail
    assert all(story.off_m(pose) < 0.1 for pose in story.poses)


def test_time_that_runs_ahead_is_told_of() -> None:
    drive = make_drive(10, 10)
    ahead = [
        (at, replace(e, stamp_ns=e.stamp_ns + 3600 * NS_PER_S) if at > 5 * NS_PER_S else e)
        for at, e in measure(drive, POSES, 10)
    ]
    story = tell(drive, ahead)
    assert story.kinds() == ["clock_ahead", "lost"]


def test_odometry_whose_time_goes_back_is_told_of() -> None:
    drive = make_drive(20, 10)
    back = [
        (at, replace(e, stamp_ns=e.stamp_ns - 60 * NS_PER_S) if at > 8 * NS_PER_S else e)
        for at, e in odometry_of(drive)
    ]
    story = tell(drive, measure(drive, POSES, 10), odometry=back)
    assert ("odometry", "clock_went_back") in [(event.source, event.kind) for event in story.events]
    assert story.poses[-1].stamp_ns <= 8 * NS_PER_S, "nothing is made up"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"pose": SE2(math.nan, 0.0, 0.0)}, "not_finite"),
        ({"pose": SE2(0.0, math.inf, 0.0)}, "not_finite"),
        ({"covariance": -np.eye(3)}, "bad_covariance"),
        ({"covariance": np.full((3, 3), math.nan)}, "bad_covariance"),
    ],
)
def test_what_is_no_measurement_is_refused(change: dict[str, object], kind: str) -> None:
    drive = make_drive(10, 11)
    arrivals = [
        (at, replace(e, **change) if 4 * NS_PER_S < e.stamp_ns < 6 * NS_PER_S else e)  # type: ignore[arg-type]
        for at, e in measure(drive, POSES, 11)
    ]
    story = tell(drive, arrivals)
    assert story.kinds() == [kind]
    assert all(story.off_m(pose) < 0.06 for pose in story.poses)


# --- as a part of a robot -------------------------------------------------------------------------------------------


def robot_file(folder: Path, localizer: str) -> str:
    path = folder / "robot.yaml"
    path.write_text(f"name: r\ndriver: drivers.fake.driver.make_robot\n{localizer}", encoding="utf-8")
    return str(path)


def test_it_wraps_the_robots_own_localizer(tmp_path: Path) -> None:
    text = "localizer: {driver: robot_runtime.localization.fused.make_localizer}\n"
    robot = load_robot(robot_file(tmp_path, text), RobotContext(None, None, seed=0))
    assert isinstance(robot.localizer, FusedLocalizer)
    assert robot.localizer.sources[0] is robot.odometry
    with robot:
        robot.clock.sleep(1.0)
        assert robot.localizer.latest(0.5).pose.distance_to(robot.referee.latest(0.5).pose) < 0.001


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("{history_s: 1.0}", ("history_s", "2")),
        ("{max_std_m: 0}", ("max_std_m", "0")),
        (
            "{absolute: {driver: robot_runtime.localization.fused.POLL_S}}",
            ("options.absolute: field 'driver'", "Localizer"),
        ),
    ],
)
def test_bad_options_are_named(tmp_path: Path, options: str, names: tuple[str, ...]) -> None:
    text = f"localizer: {{driver: robot_runtime.localization.fused.make_localizer, options: {options}}}\n"
    with raises_naming(ConfigError, *names):
        load_robot(robot_file(tmp_path, text), RobotContext(None, None, seed=0))


def test_it_needs_odometry_and_a_map() -> None:
    from robot_runtime.localization.fused import make_localizer

    context = RobotContext(None, None, seed=0)
    robot = make_robot(context, "r", {}, "test")
    with raises_naming(ConfigError, "odometry", repr(robot.name)):
        make_localizer(replace(robot, odometry=None), context, {}, "test")
    assert robot.odometry is not None
    with raises_naming(ConfigError, "'odom'", "map"):
        make_localizer(replace(robot, localizer=robot.odometry), context, {}, "test")


def test_its_presets_load() -> None:
    from robot_runtime.common import config
    from robot_runtime.robots.loader import DeviceConfig

    names = [name for name, _ in config.presets("localizers") if name.startswith("fused")]
    assert {"fused", "fused-marvelmind", "fused-apriltag"} <= set(names)
    for name in names:
        part = config.load(config.find_preset("localizers", name), DeviceConfig)
        assert part.name == name
        config.parse(part.options, FusedOptions, name)
