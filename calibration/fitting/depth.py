"""How much depth flickers: from frames that a camera took twice of the same thing.

A robot that pressed against a wall, looked up and down again, or stood waiting has seen the same view more than once.
From one such frame to the next a pixel's depth changes by the sensor's temporal noise alone, by whose standard
deviation times the root of two. What repeats itself (a bias, a hole that is always there) is not seen this way: the
scene's twin tells of biases (``robot-runtime replay``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from calibration.fitting.log_samples import LoggedEpisode, LoggedStep, whole
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.imaging.edges import jumps
from robot_runtime.recording.reader import LogReader

Array = NDArray[np.float64]
Floats = NDArray[np.float32]

MAX_PAIRS = 60
MIN_PAIRS = 3
MIN_PIXELS = 300
"""Of a bin of distances."""

STILL_M, STILL_RAD = 0.0003, math.radians(0.02)
"""A robot that moved by less than this took the same picture."""

BIN_M = 0.25
MAX_DEPTH_M = 10.0

EDGE = 0.04
"""Share of the depth by which neighbors on different surfaces are apart."""

OUTLIER_RATIO = 6.0
PIXELS = 40_000
"""Of a pair, that are looked at."""

MIN_SHARE_OF_TYPICAL = 0.25
"""A bin without any noise at all counts as one with so little, not as one that is infinitely sure."""

WIDEST_PX = 31
MEDIAN_PX = 5


@dataclass(frozen=True)
class DepthBin:
    """One range of distances.

    Attributes:
        sigma_m: temporal standard deviation. holes: share of pixels measured in one frame and not in the next.
    """

    depth_m: float
    sigma_m: float
    holes: float
    pixels: int


@dataclass(frozen=True)
class DepthFit:
    """Temporal noise of depth.

    Attributes:
        sigma: coefficients c of c[0] + c[1] z + c[2] z², meters and its powers; None where nothing was seen twice, and
            ``reason`` says so.
        window_px: over which errors are alike. edge_gain: how many times as large they are at edges. edge_holes: as
            ``DepthBin.holes``, at edges.
        bias: likewise coefficients, of measured less true depth, from a pose replay; zeros where there was none.
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
    """What pairs of frames showed: per pixel seen twice its depth, its change, and whether it lies at an edge."""

    depth_m: list[Array] = field(default_factory=list)
    change_m: list[Array] = field(default_factory=list)
    edge: list[NDArray[np.bool_]] = field(default_factory=list)
    held_m: list[Array] = field(default_factory=list)
    held_edge: list[NDArray[np.bool_]] = field(default_factory=list)
    lost: list[NDArray[np.bool_]] = field(default_factory=list)
    beside: list[tuple[float, float]] = field(default_factory=list)
    pairs: int = 0

    def add(self, first: Floats, second: Floats) -> None:
        """One pair."""
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
    """What frames that were taken twice say."""
    seen = _Seen()
    unit_m = 0.0
    every = [(episode, pair) for episode in episodes for pair in static_pairs(episode)]
    by_episode: dict[int, list[tuple[int, int]]] = {}
    for index in np.unique(np.linspace(0, len(every) - 1, min(len(every), MAX_PAIRS)).astype(int)).tolist():
        episode, pair = every[index]
        by_episode.setdefault(id(episode), []).append(pair)
    for episode in episodes:
        unit_m = max(unit_m, episode.header.depth_unit_m)
        for first, second in _frames(episode.path, by_episode.get(id(episode), [])):
            seen.add(first, second)
    return depth_of(seen, unit_m)


def depth_of(seen: _Seen, unit_m: float) -> DepthFit:
    """The noise that pairs of frames show. unit_m: lattice of the depth, whose rounding is taken off."""
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
        # What flies between two surfaces is no noise of either: the middle of the changes tells.
        gain = max(1.0, 1.4826 * float(np.median(np.abs(change_m[edge] / expected))) / math.sqrt(2))
    at_edges = float(lost[held_edge].mean()) if held_edge.sum() >= MIN_PIXELS else 0.0
    together, power = np.sum(seen.beside, axis=0)
    alike = together / power if power > 0 else 0.0
    # The mean of so many white numbers is to its neighbor's as 1 - 1/n is to 1.
    window = int(np.clip(round(1 / max(1 - alike, 1 / WIDEST_PX)), 1, WIDEST_PX))
    return DepthFit(sigma, tuple(bins), seen.pairs, window - (window % 2 == 0), gain, at_edges)


def flicker_m(changes: Array, unit_m: float) -> float:
    """The standard deviation of single values whose changes from one frame to the next these are.

    Args:
        unit_m: to which both were rounded.
    """
    sizes = np.abs(changes - np.median(changes))
    # Where steps are coarse most pixels do not change at all, and the tail alone tells.
    typical = max(1.4826 * float(np.median(sizes)), float(np.quantile(sizes, 0.95)) / 1.96, unit_m)
    near = changes[sizes <= OUTLIER_RATIO * typical]
    return math.sqrt(max(0.0, float(np.var(near)) / 2 - unit_m**2 / 12))


def at_edge(first: Floats, second: Floats) -> NDArray[np.bool_]:
    """bool (H, W): pixels with another surface beside them, in what two frames have in common.

    Medians, because the noise that is looked for makes edges of its own.
    """
    both = np.where((first > 0) & (second > 0), (first + second) / 2, np.maximum(first, second)).astype(np.float32)
    near, far = jumps(np.asarray(cv2.medianBlur(both, MEDIAN_PX), np.float32), EDGE)
    return np.asarray(far > near)


def static_pairs(episode: LoggedEpisode) -> Iterator[tuple[int, int]]:
    """Pairs of steps (indices) at which the camera stood the same, each step in one pair at most."""
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
    """By a referee who can tell."""
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
    """Depth of pairs of steps; those whose images are torn off are left out."""
    if not pairs:
        return
    wanted = {index for pair in pairs for index in pair}
    with LogReader(path) as log:
        found = (
            (record.index, log.frame(record).depth_m) for record in log.steps(images=False) if record.index in wanted
        )
        depth_m: dict[int, Floats] = dict(whole(found)[0])
    for first, second in pairs:
        if first in depth_m and second in depth_m:
            yield depth_m[first], depth_m[second]


def _neighbor_correlation(first: Floats, second: Floats, edges: NDArray[np.bool_]) -> tuple[float, float]:
    """Sums over neighbors in a row: of the products of their changes, and of their squares, in units of z²."""
    good = (first > 0) & (second > 0) & ~edges
    change = np.where(good, (second - first) / np.maximum(first, 0.1) ** 2, 0).astype(np.float64)
    typical = 1.4826 * float(np.median(np.abs(change[good]))) if good.any() else 0.0
    good &= np.abs(change) <= OUTLIER_RATIO * typical
    both = good[:, 1:] & good[:, :-1]
    left, right = change[:, :-1][both], change[:, 1:][both]
    return float((left * right).sum()), float(((left**2 + right**2) / 2).sum())


def _polynomial(bins: Sequence[DepthBin]) -> tuple[float, float, float]:
    """Coefficients of sigma over depth, none below 0: noise does not shrink with distance."""
    depth_m = np.array([one.depth_m for one in bins])
    sigma_m = np.array([one.sigma_m for one in bins])
    least_m = max(MIN_SHARE_OF_TYPICAL * float(np.median(sigma_m)), 1e-6)
    weight = np.sqrt([one.pixels for one in bins]) / np.maximum(sigma_m, least_m)
    found, _ = nnls(np.vander(depth_m, 3, increasing=True) * weight[:, None], sigma_m * weight)
    c0, c1, c2 = found.tolist()
    return c0, c1, c2
