"""Latencies of poses, images and looks, and the noise of localizers, from the stamps in logs.

A log contains the poses that had arrived when an observation was complete. The newest of them bounds the source's
latency from above, the next pose from below; over many steps the bounds converge. An image's latency is observable
where the observation waited for the image and not for a pose.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.actions import RESAMPLES
from calibration.fitting.contact import median
from calibration.fitting.log_samples import MAP_FRAME, LoggedEpisode, scatter, while_stationary
from robot_runtime.actions.discrete import Action
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.records import Outcome
from robot_runtime.scoring.statistics.intervals import Interval

Array = NDArray[np.float64]

MIN_STEPS = 10

SLACK_S = 0.003
"""Delay after its poses from which an observation has waited for its image."""

JITTER = 0.05
"""Share of steps with outlying bounds, caused by the network."""

MIN_SHIFT_S, MAX_SHIFT_S, SHIFT_STEP_S = -0.1, 0.5, 0.005

MIN_TURNED_RAD = math.radians(90)


@dataclass(frozen=True)
class SourceFit:
    """One source of poses.

    Attributes:
        latency_s: time from stamp to arrival: the middle between its bounds, and the bounds.
        rate_hz: rate of its stamps.
        lost: share of lost poses, by gaps between stamps.
        out_of_order: number of poses that arrived after a later one.
        noise_m: standard deviation of a stationary robot's position; None with too few poses.
        noise_deg: the same of its heading.
        stamps_late_s: latency of its stamps relative to odometry's, by turns; None for odometry itself, or with too few
            turns.
    """

    name: str
    latency_s: Interval | None
    rate_hz: float
    lost: float
    out_of_order: int
    noise_m: float | None
    noise_deg: float | None
    stamps_late_s: Interval | None


@dataclass(frozen=True)
class LatencyFit:
    """Latencies of a robot.

    Attributes:
        camera_s: time from exposure to delivery; None if no observation waited for its image.
        camera_at_most_s: upper bound of the same; None with too few steps.
        look_s: duration of a look up or down until rest; None with too few.
        sources: fits of single sources by role (``policy``, ``referee``, ``odometry``).
    """

    camera_s: Interval | None
    camera_at_most_s: float | None
    look_s: Interval | None
    sources: Mapping[str, SourceFit]


def fit_latency(episodes: Sequence[LoggedEpisode]) -> LatencyFit:
    """Fit the latencies to all logs."""
    sources: dict[str, SourceFit] = {}
    names: dict[str, str] = {}
    for role in ("policy", "referee", "odometry"):
        named = {episode.header.localizers.get(role, ()) for episode in episodes}
        # Several sources, fused or from different logs, have no single latency.
        if len(named) == 1 and len(only := next(iter(named))) == 1:
            names[role] = only[0]
    for role, name in names.items():
        fit = fit_source(name, episodes, names.get("odometry"))
        if fit is not None:
            sources[role] = fit
    camera_s, at_most_s = _camera(episodes, names, sources)
    looks = [
        step.result.duration_s
        for episode in episodes
        for step in episode.steps
        if step.action in (Action.LOOK_UP, Action.LOOK_DOWN)
        and step.result is not None
        and step.result.outcome is Outcome.REACHED
        and step.result.measured.tilt_rad != 0
    ]
    return LatencyFit(camera_s, at_most_s, median(looks) if len(looks) >= MIN_STEPS else None, sources)


def fit_source(name: str, episodes: Sequence[LoggedEpisode], odometry: str | None) -> SourceFit | None:
    """Fit one source of poses; None without its poses in the logs."""
    gaps_s = np.concatenate(
        [np.diff([e.stamp_ns for e in episode.raw(name)]) / NS_PER_S for episode in episodes] or [np.zeros(0)]
    )
    gaps_s = gaps_s[gaps_s > 0]
    if gaps_s.size < MIN_STEPS:
        return None
    # The mean without gaps also averages the ticks of a simulated clock.
    typical_s = float(np.median(gaps_s))
    period_s = float(gaps_s[gaps_s < 1.5 * typical_s].mean())
    lost = float(np.maximum(np.rint(gaps_s / period_s) - 1, 0).sum())
    bounds = [bound for episode in episodes for bound in _bounds(episode, name)]
    latency_s = None
    if len(bounds) >= MIN_STEPS:
        lows, highs = (np.array(side) for side in zip(*bounds, strict=True))
        low_s = max(0.0, float(np.quantile(lows, 1 - JITTER)) if lows.max() > highs.min() else float(lows.max()))
        high_s = max(low_s, float(np.quantile(highs, JITTER)) if lows.max() > highs.min() else float(highs.min()))
        latency_s = Interval((low_s + high_s) / 2, low_s, high_s)
    late_s = None if odometry in (None, name) else _stamps_late(episodes, name, str(odometry))
    disordered = sum(_out_of_order(episode, name) for episode in episodes)
    noise_m, noise_deg = _noise(episodes, name)
    return SourceFit(name, latency_s, 1 / period_s, lost / (lost + gaps_s.size), disordered, noise_m, noise_deg, late_s)


def _noise(episodes: Sequence[LoggedEpisode], name: str) -> tuple[float | None, float | None]:
    """Return the noise of a stationary robot's poses: of the position, and of the heading."""
    stationary_poses = []
    for episode in episodes:
        raw = [estimate for estimate in episode.raw(name) if estimate.status is PoseStatus.OK]
        stationary_poses += while_stationary([step.times for step in episode.steps], raw)
    covariance, _ = scatter(stationary_poses)
    if covariance is None:
        return None, None
    return math.sqrt((covariance[0, 0] + covariance[1, 1]) / 2), math.degrees(math.sqrt(covariance[2, 2]))


def _bounds(episode: LoggedEpisode, name: str) -> Iterator[tuple[float, float]]:
    """Yield lower and upper bound of a pose's latency, seconds, from each step."""
    observed_ns = {step.index: step.times.observed_ns for step in episode.steps}
    newest_ns: int | None = None
    told_ns: int | None = None
    for index, arrived in episode.arrivals:
        stamps = [estimate.stamp_ns for estimate in arrived.get(name, ())]
        if told_ns is not None and newest_ns is not None:
            later = [stamp for stamp in stamps if stamp > newest_ns]
            if later:
                yield (told_ns - min(later)) / NS_PER_S, (told_ns - newest_ns) / NS_PER_S
        if stamps:
            newest_ns = max(stamps) if newest_ns is None else max(newest_ns, *stamps)
        told_ns = None if index is None else observed_ns.get(index)


def _out_of_order(episode: LoggedEpisode, name: str) -> int:
    newest_ns, count = 0, 0
    for _, arrived in episode.arrivals:
        for estimate in arrived.get(name, ()):
            count += estimate.stamp_ns < newest_ns
            newest_ns = max(newest_ns, estimate.stamp_ns)
    return count


def _camera(
    episodes: Sequence[LoggedEpisode], names: Mapping[str, str], sources: Mapping[str, SourceFit]
) -> tuple[Interval | None, float | None]:
    """Return the latency of images that were waited for, and an upper bound by all images."""
    waited, taken = [], []
    for episode in episodes:
        stamps = {
            role: np.array([estimate.stamp_ns for estimate in episode.raw(names[role])])
            for role in ("policy", "referee")
            if role in sources
        }
        for step in episode.steps:
            late_s = (step.times.observed_ns - step.times.exposed_ns) / NS_PER_S
            taken.append(late_s)
            if set(stamps) == {"policy", "referee"}:
                ready = [_pose_ready_s(step.times.exposed_ns, stamps[role], sources[role]) for role in stamps]
                if all(late_s - SLACK_S > latest_s for latest_s in ready):
                    waited.append(late_s)
    at_most_s = float(np.quantile(taken, JITTER)) if len(taken) >= MIN_STEPS else None
    return (median(waited) if len(waited) >= MIN_STEPS else None), at_most_s


def _pose_ready_s(exposed_ns: int, stamps: NDArray[np.int64], source: SourceFit) -> float:
    """Return the latest time after an exposure at which its pose was available, seconds; infinite if unknown.

    A waiting reader may poll only once per period.
    """
    place = int(np.searchsorted(stamps, exposed_ns))
    if source.latency_s is None or place == len(stamps):
        return math.inf
    arrived_s = float(stamps[place] - exposed_ns) / NS_PER_S + source.latency_s.high
    return arrived_s if arrived_s <= SLACK_S else arrived_s + 1 / source.rate_hz


def _stamps_late(episodes: Sequence[LoggedEpisode], name: str, odometry: str) -> Interval | None:
    """Return the shift in time at which a source's turns equal odometry's, with a bootstrap interval over episodes."""
    shifts_s = np.arange(MIN_SHIFT_S, MAX_SHIFT_S + SHIFT_STEP_S / 2, SHIFT_STEP_S)
    misfits, turned_rad = [], 0.0
    for episode in episodes:
        seen = [
            estimate
            for estimate in episode.raw(name)
            if estimate.status is PoseStatus.OK
            and estimate.frame == MAP_FRAME
            and math.isfinite(estimate.covariance[2, 2])
        ]
        wheels = episode.raw(odometry)
        if len(seen) > MIN_STEPS and len(wheels) > MIN_STEPS:
            misfit, turned = _misfit(seen, wheels, shifts_s)
            misfits.append(misfit)
            turned_rad += turned
    if turned_rad < MIN_TURNED_RAD:
        return None
    table = np.array(misfits)
    random = np.random.default_rng(0)
    rows = random.integers(0, len(table), (RESAMPLES // 4, len(table)))
    drawn = [_lowest(shifts_s, table[row].sum(axis=0)) for row in rows]
    low_s, high_s = np.quantile(drawn, [0.025, 0.975])
    return Interval(_lowest(shifts_s, table.sum(axis=0)), float(low_s), float(high_s))


def _misfit(seen: Sequence[PoseEstimate], wheels: Sequence[PoseEstimate], shifts_s: Array) -> tuple[Array, float]:
    """Return the sum of squared differences of turns per shift, and the total turn by odometry."""
    stamps_s = np.array([estimate.stamp_ns for estimate in seen]) / NS_PER_S
    steps_rad = np.array([wrap_angle(b.pose.yaw_rad - a.pose.yaw_rad) for a, b in pairwise(seen)])
    at_s = np.array([estimate.stamp_ns for estimate in wheels]) / NS_PER_S
    yaw_rad = np.unwrap([estimate.pose.yaw_rad for estimate in wheels])
    inside = (stamps_s - MAX_SHIFT_S >= at_s[0]) & (stamps_s - MIN_SHIFT_S <= at_s[-1])
    good = inside[:-1] & inside[1:]
    sums = [
        float(((steps_rad - np.diff(np.interp(stamps_s - shift_s, at_s, yaw_rad)))[good] ** 2).sum())
        for shift_s in shifts_s
    ]
    return np.array(sums), float(np.abs(np.diff(yaw_rad)).sum())


def _lowest(shifts_s: Array, sums: Array) -> float:
    """Return the minimum of a parabola through the lowest of the sums and its neighbors."""
    place = int(np.clip(np.argmin(sums), 1, len(sums) - 2))
    before, at, after = sums[place - 1 : place + 2]
    bend = before - 2 * at + after
    return float(shifts_s[place] + (0.5 * (before - after) / bend * SHIFT_STEP_S if bend > 0 else 0.0))
