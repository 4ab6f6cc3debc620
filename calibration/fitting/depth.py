"""Temporal noise of depth, from pairs of frames of the same view.

A robot that pressed against a wall, tilted its head up and down again, or waited has taken the same view more than
once. The differences of such frames are the sensor's temporal noise, with a standard deviation larger by the root of
two. A constant bias or hole cannot be observed this way; pose replays in a simulated scene show biases (``robot-runtime
replay``).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from calibration.fitting.log_samples import LoggedEpisode, LoggedStep, evenly
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.imaging.depth import jumps
from robot_runtime.recording.reader import LogReader, before_damage

Array = NDArray[np.float64]
Floats = NDArray[np.float32]

MAX_PAIRS = 60
MIN_PAIRS = 3
MIN_PIXELS = 300
"""Least number of pixels in a bin of distances."""

STILL_M, STILL_RAD = 0.0003, math.radians(0.02)
"""Motion of the robot below which two views are the same."""

BIN_M = 0.25
MAX_DEPTH_M = 10.0

EDGE = 0.04
"""Relative difference of depth between neighbors on different surfaces."""

OUTLIER_RATIO = 6.0
PIXELS = 40_000
"""Number of evaluated pixels of a pair."""

MIN_SHARE_OF_TYPICAL = 0.25
"""Least noise of a bin relative to the median of all bins; it limits the bin's weight."""

WIDEST_PX = 31
MEDIAN_PX = 5


@dataclass(frozen=True)
class DepthBin:
    """One range of distances.

    Attributes:
        depth_m: mean depth.
        sigma_m: temporal standard deviation.
        holes: share of pixels measured in one frame and not in the next.
    """

    depth_m: float
    sigma_m: float
    holes: float
    pixels: int


@dataclass(frozen=True)
class DepthFit:
    """Temporal noise of depth.

    Attributes:
        sigma: coefficients c of c[0] + c[1] z + c[2] z², meters and its powers; None without pairs of frames.
        bins: noise by distance.
        pairs: number of pairs of frames.
        window_px: correlation length of the errors.
        edge_gain: ratio of the errors at edges to those on surfaces.
        edge_holes: ``DepthBin.holes`` at edges.
        bias: coefficients of measured less true depth from a pose replay; zeros without one.
        reason: why the noise is unknown.
    """

    sigma: tuple[float, float, float] | None
    bins: tuple[DepthBin, ...] = ()
    pairs: int = 0
    window_px: int = 1
    edge_gain: float = 1.0
    edge_holes: float = 0.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reason: str = ""


@dataclass(eq=False)
class _Seen:
    """Pixels of pairs of frames: depth, change, position at an edge, and losses."""

    depth_m: list[Array] = field(default_factory=list)
    change_m: list[Array] = field(default_factory=list)
    edge: list[NDArray[np.bool_]] = field(default_factory=list)
    held_m: list[Array] = field(default_factory=list)
    held_edge: list[NDArray[np.bool_]] = field(default_factory=list)
    lost: list[NDArray[np.bool_]] = field(default_factory=list)
    beside: list[tuple[float, float]] = field(default_factory=list)
    pairs: int = 0

    def add(self, first: Floats, second: Floats) -> None:
        """Add one pair."""
        edges = at_edge(first, second)
        rows, columns = np.mgrid[0 : first.shape[0], 0 : first.shape[1]]
        stride = max(1, round(math.sqrt(first.size / PIXELS)))
        taken = (rows % stride == 0) & (columns % stride == 0)
        measured_first = taken & (first > 0)
        self.held_m.append(first[measured_first].astype(np.float64))
        self.held_edge.append(edges[measured_first])
        self.lost.append(second[measured_first] == 0)
        both = measured_first & (second > 0)
        self.depth_m.append(((first + second)[both] / 2).astype(np.float64))
        self.change_m.append((second - first)[both].astype(np.float64))
        self.edge.append(edges[both])
        self.beside.append(_neighbor_correlation(first, second, edges))
        self.pairs += 1


def fit_depth(episodes: Sequence[LoggedEpisode]) -> DepthFit:
    """Fit the temporal noise of depth to pairs of frames of the same view."""
    seen = _Seen()
    unit_m = 0.0
    every = [(episode, pair) for episode in episodes for pair in static_pairs(episode)]
    by_episode: dict[int, list[tuple[int, int]]] = {}
    for index in evenly(len(every), MAX_PAIRS):
        episode, pair = every[index]
        by_episode.setdefault(id(episode), []).append(pair)
    for episode in episodes:
        unit_m = max(unit_m, episode.header.depth_unit_m)
        for first, second in _frames(episode.path, by_episode.get(id(episode), [])):
            seen.add(first, second)
    return depth_of(seen, unit_m)


def depth_of(seen: _Seen, unit_m: float) -> DepthFit:
    """Return the noise of pairs of frames.

    Args:
        seen: pixels of the pairs.
        unit_m: unit of depth, whose rounding error is subtracted.
    """
    if seen.pairs < MIN_PAIRS:
        why = f"{seen.pairs} pairs of frames of the same view, {MIN_PAIRS} are needed: record a robot that stands"
        return DepthFit(None, pairs=seen.pairs, reason=why)
    depth_m, change_m, held_m = (np.concatenate(parts) for parts in (seen.depth_m, seen.change_m, seen.held_m))
    edge, held_edge, lost = (np.concatenate(parts) for parts in (seen.edge, seen.held_edge, seen.lost))
    bins = []
    for low in np.arange(0.0, MAX_DEPTH_M, BIN_M):
        inside = (depth_m >= low) & (depth_m < low + BIN_M) & ~edge
        measured_first = (held_m >= low) & (held_m < low + BIN_M) & ~held_edge
        if inside.sum() >= MIN_PIXELS:
            holes = float(lost[measured_first].mean()) if measured_first.any() else 0.0
            noise_m = flicker_m(change_m[inside], unit_m)
            bins.append(DepthBin(float(depth_m[inside].mean()), noise_m, holes, int(inside.sum())))
    if not bins:
        return DepthFit(None, pairs=seen.pairs, reason="frames of the same view show no surfaces: is there any depth?")
    sigma = _polynomial(bins)
    expected = np.polynomial.polynomial.polyval(depth_m[edge], sigma)
    gain = 1.0
    if edge.sum() >= MIN_PIXELS and expected.min() > 0:
        # The median excludes flying pixels between two surfaces.
        gain = max(1.0, 1.4826 * float(np.median(np.abs(change_m[edge] / expected))) / math.sqrt(2))
    at_edges = float(lost[held_edge].mean()) if held_edge.sum() >= MIN_PIXELS else 0.0
    together, power = np.sum(seen.beside, axis=0)
    alike = together / power if power > 0 else 0.0
    # Moving means over n white numbers have a correlation of 1 - 1/n with their neighbors.
    window = int(np.clip(round(1 / max(1 - alike, 1 / WIDEST_PX)), 1, WIDEST_PX))
    return DepthFit(sigma, tuple(bins), seen.pairs, window - (window % 2 == 0), gain, at_edges)


def flicker_m(changes: Array, unit_m: float) -> float:
    """Return the standard deviation of single values from their changes between two frames.

    Args:
        changes: float64 (N,), differences of two frames, m.
        unit_m: unit to which both were rounded.
    """
    sizes = np.abs(changes - np.median(changes))
    # With coarse steps most pixels do not change, and only the tail is informative.
    typical = max(1.4826 * float(np.median(sizes)), float(np.quantile(sizes, 0.95)) / 1.96, unit_m)
    near = changes[sizes <= OUTLIER_RATIO * typical]
    return math.sqrt(max(0.0, float(np.var(near)) / 2 - unit_m**2 / 12))


def at_edge(first: Floats, second: Floats) -> NDArray[np.bool_]:
    """Return the pixels next to another surface in two frames, bool (H, W), after a median filter against noise."""
    both = np.where((first > 0) & (second > 0), (first + second) / 2, np.maximum(first, second)).astype(np.float32)
    near, far = jumps(np.asarray(cv2.medianBlur(both, MEDIAN_PX), np.float32), EDGE)
    return np.asarray(far > near)


def static_pairs(episode: LoggedEpisode) -> Iterator[tuple[int, int]]:
    """Yield pairs of steps (indices) with the same camera pose, each step in at most one pair."""
    waiting: list[tuple[LoggedStep, float, float]] = []
    moved_m = moved_rad = 0.0
    for step in episode.steps:
        if step.result is not None:
            moved_m += abs(step.result.measured.forward_m)
            moved_rad += abs(step.result.measured.turn_rad)
        for other in waiting:
            unmoved = moved_m - other[1] <= STILL_M and moved_rad - other[2] <= STILL_RAD
            if _same_head(step, other[0]) and (unmoved or _same_place(step, other[0])):
                waiting.remove(other)
                yield other[0].index, step.index
                break
        else:
            waiting.append((step, moved_m, moved_rad))


def _same_head(a: LoggedStep, b: LoggedStep) -> bool:
    return abs(a.head.tilt_rad - b.head.tilt_rad) <= STILL_RAD and abs(a.head.pan_rad - b.head.pan_rad) <= STILL_RAD


def _same_place(a: LoggedStep, b: LoggedStep) -> bool:
    """Return whether two poses are equal by a sufficiently accurate referee."""
    if (
        a.stationary is None
        or b.stationary is None
        or a.stationary.noise[0, 0] > STILL_M**2
        or a.stationary.noise[2, 2] > STILL_RAD**2
    ):
        return False
    turned_rad = wrap_angle(a.stationary.truth.yaw_rad - b.stationary.truth.yaw_rad)
    return a.stationary.truth.distance_to(b.stationary.truth) <= STILL_M and abs(turned_rad) <= STILL_RAD


def _frames(path: Path, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[Floats, Floats]]:
    """Yield the depth of pairs of steps, without truncated ones."""
    if not pairs:
        return
    wanted = {index for pair in pairs for index in pair}
    with LogReader(path) as log:
        images = (
            (record.index, log.frame(record).depth_m) for record in log.steps(images=False) if record.index in wanted
        )
        depth_m: dict[int, Floats] = dict(before_damage(images)[0])
    for first, second in pairs:
        if first in depth_m and second in depth_m:
            yield depth_m[first], depth_m[second]


def _neighbor_correlation(first: Floats, second: Floats, edges: NDArray[np.bool_]) -> tuple[float, float]:
    """Return sums over horizontal neighbors: of the products of their changes, and of their squares, in units of z²."""
    good = (first > 0) & (second > 0) & ~edges
    change = np.where(good, (second - first) / np.maximum(first, 0.1) ** 2, 0).astype(np.float64)
    typical = 1.4826 * float(np.median(np.abs(change[good]))) if good.any() else 0.0
    good &= np.abs(change) <= OUTLIER_RATIO * typical
    both = good[:, 1:] & good[:, :-1]
    left, right = change[:, :-1][both], change[:, 1:][both]
    return float((left * right).sum()), float(((left**2 + right**2) / 2).sum())


def _polynomial(bins: Sequence[DepthBin]) -> tuple[float, float, float]:
    """Fit non-negative coefficients of sigma over depth."""
    depth_m = np.array([each.depth_m for each in bins])
    sigma_m = np.array([each.sigma_m for each in bins])
    least_m = max(MIN_SHARE_OF_TYPICAL * float(np.median(sigma_m)), 1e-6)
    weight = np.sqrt([each.pixels for each in bins]) / np.maximum(sigma_m, least_m)
    coefficients, _ = nnls(np.vander(depth_m, 3, increasing=True) * weight[:, None], sigma_m * weight)
    c0, c1, c2 = coefficients.tolist()
    return c0, c1, c2
