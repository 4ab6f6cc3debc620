"""The filter against textbook algebra, itself in another order, and the truth."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_runtime.common.clock import NS_PER_S, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.localization.ekf import Decision, PoseFilter, pose_of
from robot_runtime.localization.gaussian_pose import Belief, Measurement, covariance_of, predict, update, whitening
from robot_runtime.localization.odometry_preintegration import OdometryNoise, PreintegratedOdometry, motion
from tests.benchmarks.runtime.synthetic_drives import Beacons, Drive, make_drive, measure

angles = st.floats(-math.pi, math.pi)
lengths = st.floats(-5, 5)
poses = st.builds(SE2, lengths, lengths, angles)
steps = st.lists(st.tuples(st.floats(-0.1, 0.1), st.floats(-0.3, 0.3)), min_size=2, max_size=30)


def belief_of(pose: SE2, covariance: np.ndarray) -> Belief:
    (xx, xy, xt), (_, yy, yt), (_, _, tt) = covariance.tolist()
    return (pose.x_m, pose.y_m, pose.yaw_rad, xx, xy, xt, yy, yt, tt)


@st.composite
def covariances(draw: st.DrawFn) -> np.ndarray:
    """Correlated, of centimeters and degrees."""
    root = np.array(draw(st.lists(st.floats(-1, 1), min_size=9, max_size=9))).reshape(3, 3) * 0.05
    return root @ root.T + np.diag([1e-4, 1e-4, 1e-4])


def measurement_of(
    stamp_ns: int, pose: SE2, covariance: np.ndarray, lever_m: tuple[float, float] = (0.0, 0.0)
) -> Measurement:
    return Measurement(stamp_ns, pose.x_m, pose.y_m, pose.yaw_rad, whitening(covariance, 0.0, 0.0), lever_m)


def track_of(moves: list[tuple[float, float]], noise: OdometryNoise | None = None) -> PreintegratedOdometry:
    """Odometry that goes and turns so at each of its samples, 20 ms apart."""
    track, pose = PreintegratedOdometry(noise or OdometryNoise(), 100.0), SE2(3.0, -2.0, 1.0)
    for index, (forward_m, turn_rad) in enumerate([(0.0, 0.0), *moves]):
        pose = pose @ SE2(forward_m, 0.0, turn_rad)
        assert track.add(index * 20_000_000, pose)
    return track


def is_covariance(belief: Belief) -> bool:
    covariance = covariance_of(belief)
    return bool(np.allclose(covariance, covariance.T, atol=0) and np.linalg.eigvalsh(covariance).min() > -1e-12)


# --- the algebra ----------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(steps, poses, covariances(), st.data())
def test_one_long_step_is_many_short_ones(moves, start, covariance, data) -> None:
    track = track_of(moves)
    first, last = track.at(0), track.at(len(moves) * 20_000_000)
    middle = track.at(data.draw(st.integers(0, len(moves) * 20_000_000)))
    assert first is not None
    assert middle is not None
    assert last is not None
    belief = belief_of(start, covariance)
    direct, by_way = predict(belief, first, last), predict(predict(belief, first, middle), middle, last)
    np.testing.assert_allclose(direct, by_way, atol=1e-9)
    assert is_covariance(direct)


def test_the_way_adds_the_uncertainty_that_simulated_errors_have() -> None:
    """A square drive, ten thousand times, with errors as the noise model states them."""
    moves = [(0.05, 0.0)] * 20 + [(0.0, math.pi / 40)] * 20
    noise = OdometryNoise(position_m=0.03, heading_deg=2.0, turn_deg=5.0)
    random = np.random.default_rng(0)
    count, x, y, yaw = 10_000, *np.zeros((3, 10_000))
    for forward_m, turn_rad in moves * 2:
        way, about = abs(forward_m), abs(turn_rad)
        q = math.radians(2.0) ** 2 * way + math.radians(5.0) ** 2 / (2 * math.pi) * about
        error = random.normal(0, math.sqrt(q), count)
        heading = yaw + error / 2
        x = x + forward_m * np.cos(heading) + random.normal(0, 0.03 * math.sqrt(way), count)
        y = y + forward_m * np.sin(heading) + random.normal(0, 0.03 * math.sqrt(way), count)
        yaw = yaw + turn_rad + error
    track = PreintegratedOdometry(noise, 100.0)
    pose = SE2()
    for index, (forward_m, turn_rad) in enumerate([(0.0, 0.0), *moves * 2]):
        pose = pose @ SE2(forward_m, 0.0, turn_rad)
        track.add(index, pose)
    first, last = track.at(0), track.at(len(moves) * 2)
    assert first is not None
    assert last is not None
    found = covariance_of(predict((0.0,) * 9, first, last))
    np.testing.assert_allclose(found, np.cov([x, y, yaw]), atol=0.06 * np.abs(found).max())


@settings(max_examples=40, deadline=None)
@given(poses, covariances(), covariances(), st.tuples(*[st.floats(-0.1, 0.1)] * 3), st.booleans(), lengths)
def test_taking_in_a_measurement_is_the_textbooks_update(start, covariance, noise, off, heading_known, lever) -> None:
    belief = belief_of(start, covariance)
    mark = start.apply(lever, 0.2)
    size = 3 if heading_known else 2
    stated = noise.copy()
    if not heading_known:
        stated[2, 2] = math.inf
    measured = SE2(mark[0] + off[0], mark[1] + off[1], start.yaw_rad + off[2])
    distance, updated = update(belief, measurement_of(0, measured, stated, (lever, 0.2)))
    ax, ay = mark[0] - start.x_m, mark[1] - start.y_m
    h = np.array([[1, 0, -ay], [0, 1, ax], [0, 0, 1.0]])[:size]
    r, z = noise[:size, :size], np.array(off)[:size]
    s = h @ covariance @ h.T + r
    gain = covariance @ h.T @ np.linalg.inv(s)
    joseph = np.eye(3) - gain @ h
    np.testing.assert_allclose(distance, z @ np.linalg.solve(s, z), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(updated[:3], np.array([start.x_m, start.y_m, start.yaw_rad]) + gain @ z, atol=1e-7)
    expected = joseph @ covariance @ joseph.T + gain @ r @ gain.T
    np.testing.assert_allclose(covariance_of(updated), expected, atol=1e-8)


@pytest.mark.parametrize(
    "covariance", [-np.eye(3), np.full((3, 3), math.nan), np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1.0]])]
)
def test_what_is_no_covariance_is_refused(covariance: np.ndarray) -> None:
    with pytest.raises(ValueError, match="not the covariance of a pose"):
        whitening(covariance, 0.001, 0.001)


# --- the order of arrival -------------------------------------------------------------------------------------------


def replay(drive: Drive, measurements: list[Measurement], begin: bool = True) -> PoseFilter:
    """Odometry first, then measurements in the order given."""
    pose_filter = PoseFilter(history_s=60.0)
    for index, stamp_ns in enumerate(drive.stamps_ns):
        assert pose_filter.add_odometry(stamp_ns, drive.odometry[index])
        if begin and not index:
            assert pose_filter.initialize(stamp_ns, drive.truth[0], 0.05, 0.1)
    for measurement in measurements:
        pose_filter.add_measurement(measurement)
    return pose_filter


def measurements_of(drive: Drive, beacons: Beacons, seed: int) -> list[Measurement]:
    return [measurement_of(e.stamp_ns, e.pose, e.covariance) for _, e in measure(drive, beacons, seed)]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([None, 1.0]), st.booleans(), st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_same_state(seed, noise_deg, begin, shuffler) -> None:
    drive = make_drive(8, seed)
    measurements = measurements_of(drive, Beacons(noise_deg=noise_deg, dropouts_per_min=10), seed)
    ordered = replay(drive, measurements, begin)
    shuffled = replay(drive, shuffler.sample(measurements, len(measurements)), begin)
    assert [node.decision for node in ordered.nodes] == [node.decision for node in shuffled.nodes]
    assert [node.belief for node in ordered.nodes] == [node.belief for node in shuffled.nodes]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_measurements_that_overtake_odometry_wait_for_it(seed, shuffler) -> None:
    drive = make_drive(5, seed)
    measurements = measurements_of(drive, Beacons(), seed)
    after = replay(drive, measurements)
    early = PoseFilter(history_s=60.0)
    early.add_odometry(drive.stamps_ns[0], drive.odometry[0])
    early.initialize(drive.stamps_ns[0], drive.truth[0], 0.05, 0.1)
    for measurement in shuffler.sample(measurements, len(measurements)):
        assert early.add_measurement(measurement) in (Decision.WAITING, Decision.TOO_OLD)
    for stamp_ns, pose in zip(drive.stamps_ns[1:], drive.odometry[1:], strict=True):
        early.add_odometry(stamp_ns, pose)
    assert [node.belief for node in early.nodes] == [node.belief for node in after.nodes]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([None, 2.0]))
def test_covariances_stay_covariances_and_headings_wrap(seed, noise_deg) -> None:
    drive = make_drive(12, seed, SE2(0.0, 0.0, math.pi - 0.01))
    measurements = measurements_of(drive, Beacons(noise_m=0.001, noise_deg=noise_deg, outliers=0.2), seed)
    pose_filter = replay(drive, measurements)
    for stamp_ns, truth in zip(drive.stamps_ns, drive.truth, strict=True):
        belief = pose_filter.estimate(stamp_ns)
        if belief is None:
            continue
        assert is_covariance(belief)
        pose = pose_of(belief)
        assert -math.pi < pose.yaw_rad <= math.pi
        assert abs(wrap_angle(pose.yaw_rad - truth.yaw_rad)) < 0.2


def test_a_second_measurement_of_an_instant_replaces_the_first() -> None:
    drive = make_drive(2, 0)
    measurements = measurements_of(drive, Beacons(outliers=0), 0)
    wrong = [
        Measurement(measurement.stamp_ns, measurement.x_m + 0.02, measurement.y_m, 0.0, measurement.whitening)
        for measurement in measurements
    ]
    assert [n.belief for n in replay(drive, wrong + measurements).nodes] == [
        n.belief for n in replay(drive, measurements).nodes
    ]


# --- how late, how far ----------------------------------------------------------------------------------------------


def test_history_reaches_back_two_seconds_at_least_and_no_further_than_it_says() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        PoseFilter(history_s=1.9)
    drive = make_drive(30, 0)
    measurements = measurements_of(drive, Beacons(rate_hz=50, outliers=0, dropouts_per_min=0), 0)
    pose_filter = PoseFilter(history_s=2.0)
    for stamp_ns, pose in zip(drive.stamps_ns, drive.odometry, strict=True):
        pose_filter.add_odometry(stamp_ns, pose)
    for measurement in measurements:
        pose_filter.add_measurement(measurement)
    last_ns = measurements[-1].stamp_ns
    late = [
        Measurement(last_ns - NS_PER_S * back // 10 + 1, f.x_m, f.y_m, 0.0, f.whitening)
        for back, f in ((19, measurements[-96]),)
    ]
    assert pose_filter.add_measurement(late[0]) is not Decision.TOO_OLD
    assert pose_filter.add_measurement(measurements[0]) is Decision.TOO_OLD
    assert len(pose_filter.nodes) < 600, "what is too old is forgotten"


def test_without_odometry_nothing_can_be_begun_and_everything_waits() -> None:
    pose_filter = PoseFilter()
    assert not pose_filter.initialize(0, SE2(), 0.1, 0.1)
    assert pose_filter.add_measurement(measurement_of(0, SE2(), np.eye(3))) is Decision.WAITING
    assert pose_filter.estimate(0) is None
    assert not pose_filter.initialized
    assert pose_filter.add_odometry(5, SE2())
    assert not pose_filter.add_odometry(5, SE2(1.0, 0.0, 0.0)), "odometry that is not newer is ignored"
    assert pose_filter.add_measurement(measurement_of(4, SE2(), np.eye(3))) is Decision.TOO_OLD


def test_track_interpolates_and_forgets() -> None:
    track = PreintegratedOdometry(OdometryNoise(), span_s=1.0)
    for index in range(400):
        track.add(index * 10_000_000, SE2(index * 0.01, 0.0, 0.0))
    assert track.newest_ns == 3_990_000_000
    assert track.oldest_ns is not None
    assert 2_000_000_000 < track.oldest_ns <= 2_990_000_000
    halfway = track.at(3_985_000_000)
    assert halfway is not None
    assert halfway[0] == pytest.approx(3.985)
    assert track.at(track.oldest_ns - 1) is None
    assert track.at(track.newest_ns + 1) is None
    moved = motion(halfway, halfway)
    assert moved == pytest.approx((0.0,) * 9)


# --- the truth ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [True, False], ids=["placed", "from nothing"])
def test_positions_alone_give_centimeters_and_a_degree(begin: bool) -> None:
    drive = make_drive(40, 3)
    measurements = measurements_of(drive, Beacons(), 3)
    pose_filter = replay(drive, measurements, begin)
    found = [
        (stamp_ns, truth, pose_filter.estimate(stamp_ns))
        for stamp_ns, truth in zip(drive.stamps_ns, drive.truth, strict=True)
    ]
    told = [(truth, pose_of(belief)) for stamp_ns, truth, belief in found if belief and stamp_ns > 10 * NS_PER_S]
    assert len(told) > 0.8 * len(found)
    assert math.sqrt(np.mean([truth.distance_to(pose) ** 2 for truth, pose in told])) < 0.015
    assert math.degrees(math.sqrt(np.mean([wrap_angle(t.yaw_rad - p.yaw_rad) ** 2 for t, p in told]))) < 1.5
    for truth, pose in told:
        assert truth.distance_to(pose) < 0.06


def test_a_mark_off_the_center_is_no_error() -> None:
    drive = make_drive(20, 5)
    lever_m = (-0.1, 0.15)
    weights = whitening(Beacons().covariance, 0.002, 0.002)
    measurements = []
    for stamp_ns in range(drive.stamps_ns[0], drive.stamps_ns[-1], seconds_to_ns(0.125)):
        x_m, y_m = drive.at(stamp_ns).apply(*lever_m)
        measurements.append(Measurement(stamp_ns, x_m, y_m, 0.0, weights, lever_m))
    for begin in (True, False):
        pose_filter = replay(drive, measurements, begin)
        belief = pose_filter.estimate(drive.stamps_ns[-1])
        assert belief is not None
        assert pose_of(belief).distance_to(drive.truth[-1]) < 0.02


def test_uncertainty_is_honest() -> None:
    """Errors beyond three standard deviations are rare: what is published as covariance is one."""
    beyond = total = 0
    for seed in range(4):
        drive = make_drive(20, seed)
        pose_filter = replay(drive, measurements_of(drive, Beacons(), seed))
        for index in drive.rests[2:]:
            belief = pose_filter.estimate(drive.stamps_ns[index])
            assert belief is not None
            off = np.array(belief[:3]) - (drive.truth[index].x_m, drive.truth[index].y_m, drive.truth[index].yaw_rad)
            off[2] = wrap_angle(off[2])
            beyond += float(off @ np.linalg.solve(covariance_of(belief), off)) > 16.3
            total += 1
    assert total > 60
    assert beyond <= 0.1 * total


def test_beliefs_between_measurements_follow_odometry() -> None:
    drive = make_drive(6, 1)
    pose_filter = replay(drive, [])
    for (before_ns, a), (after_ns, b) in pairwise(list(zip(drive.stamps_ns, drive.odometry, strict=True))[::10]):
        before, after = pose_filter.estimate(before_ns), pose_filter.estimate(after_ns)
        assert before is not None
        assert after is not None
        moved = pose_of(after).relative_to(pose_of(before))
        assert moved.distance_to(b.relative_to(a)) < 1e-9
