"""Checks of a pose source against odometry and the map; each names one kind of failure.

Fused sources use :class:`SourceHealth` alone, because their filter rejects jumps; all others use it through
``hal.pose_checks``.

====================  ==================================================================  ===========================
event                 condition                                                           consequence
====================  ==================================================================  ===========================
``no_fix``            the source reports that it has lost the robot                       ignored until ``fix``
``not_finite``        a pose with NaN or infinity                                         rejected
``bad_covariance``    the matrix is not a covariance                                      rejected
``clock_went_back``   a stamp older than the newest one by more than the allowed delay    rejected
``clock_ahead``       a stamp far ahead of odometry's                                     rejected
``out_of_map``        a position outside the scene's map                                  rejected
``frozen``            constant measurements although odometry moved on or turned          rejected until they change
``mirrored``          positions or headings turn the wrong way against odometry           all rejected
``scale``             distances differ from those by odometry by a factor                 all rejected
====================  ==================================================================  ===========================

A factor of 20 or more (centimeters, millimeters) is found within 10 cm of driving; other factors and mirrored frames
by aligning the measured path with odometry's, once as it is and once mirrored, with a free scale
(in complex numbers, a similarity is a product: ``w = a p`` or ``w = a conj(p)``), on the four fifths of the points that
fit best, so that outliers do not matter.
"""

import cmath
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.common.quantities import AngleTolerance, ShortTime, SmallMove
from robot_runtime.hal.events import Event
from robot_runtime.hal.localizer import PoseEstimate, PoseStatus

SAME = 1e-6
"""Meters and radians within which two measurements count as equal."""

MAX_PAIRS = 40
MIN_PAIRS = 10
PAIR_M = 0.1
"""Smallest distance between compared positions on the path; all of them cover 4 m."""
MIN_SPREAD_M = 0.3
"""Smallest root mean square distance of the compared positions from their centroid."""
SCALES = (0.67, 1.5)
MIN_FIT = 0.8
"""Fraction of the measured path's variance that a similarity must explain before conclusions are drawn."""
MIN_EXTENT = 0.2
"""A measured path smaller than this fraction of odometry's has a wrong scale, whatever the fit."""

JUMP_M = 0.1
"""Jump beyond twice the usual distance between two positions: five standard deviations of their noise."""

UNIT_STRIDE_M = 0.02
UNIT_STRIDES = 5
"""Consecutive strides of ``UNIT_STRIDE_M`` that must show the same factor."""
UNIT_FACTOR = 20.0
"""Smallest factor that is found by single strides: noise of a source that reports meters cannot reach it."""

PAIR_RAD = math.radians(20)
MIN_TURNED_RAD = math.radians(150)

Bounds = tuple[float, float, float, float]

OdometryPose = Sequence[float]
"""x, y and unwrapped yaw in odom, meters and radians; further numbers are ignored."""


class MeasuredPoint(NamedTuple):
    """A measured position or pose in the map.

    Attributes:
        stamp_ns: time of the measurement.
        yaw_rad: heading of the robot; None for a position without heading.
        std_m: standard deviation of a coordinate.
        lever_m: the measured point in base_link.
    """

    stamp_ns: int
    x_m: float
    y_m: float
    yaw_rad: float | None
    std_m: float
    lever_m: tuple[float, float]


@dataclass(frozen=True)
class HealthLimits(config.Strict):
    """Limits of the checks.

    Attributes:
        moved_m: distance by odometry over which a position must change.
        turned_deg: turn by odometry over which a heading must change.
        late_s: largest delay of a measurement.
        ahead_s: how far its stamp may be ahead of odometry's.
        margin_m: how far outside the map a position may lie.
    """

    moved_m: SmallMove = 0.1
    turned_deg: AngleTolerance = 10.0
    late_s: ShortTime = 5.0
    ahead_s: ShortTime = 1.0
    margin_m: float = 3.0


class SourceHealth:
    """The checks of a source, without clock or device.

    Args:
        name: name of the source, for events.
        limits: limits of the checks.
        bounds: x and y of the map's lower left and upper right corner, meters; None if the map is not known.

    Attributes:
        broken: why all measurements of this source are rejected; empty while they are not.
        frozen_since_ns: stamp of the first of the measurements that do not change; None while they do.
        why: why the newest measurement was refused; empty if it was not.
    """

    def __init__(self, name: str, limits: HealthLimits, bounds: Bounds | None = None) -> None:
        self._name = name
        self._limits = limits
        self._bounds = bounds
        self._events: list[Event] = []
        self._reported: set[str] = set()
        self.clear()

    def clear(self) -> None:
        """Forget all measurements, for instance after the robot was carried."""
        self.broken = self.why = ""
        self.frozen_since_ns: int | None = None
        self._newest_ns: int | None = None
        self._reported.clear()
        self._repeated: tuple[MeasuredPoint, OdometryPose] | None = None
        self._path: deque[tuple[int, complex, complex]] = deque(maxlen=MAX_PAIRS)
        self._newest: tuple[complex, complex] | None = None
        self._segment = 0
        """Number of the current segment of the path; positions jump between segments."""
        self._strides: deque[tuple[complex, complex]] = deque(maxlen=UNIT_STRIDES + 1)
        self._turns: deque[tuple[float, float]] = deque(maxlen=MAX_PAIRS)
        self._last_yaws: tuple[float, float] | None = None

    def relocalized(self) -> None:
        """Note that the filter relocalized: a jump of positions is neither a scale error nor a mirrored frame.

        Without a jump (a mirrored frame drifts away from odometry continuously), the path stays one segment.
        """
        jumps = self._jumps()
        if jumps:
            self._segment += 1
            later = [(self._segment if i >= jumps[-1] else pair[0], *pair[1:]) for i, pair in enumerate(self._path)]
            self._path = deque(later, maxlen=MAX_PAIRS)
            self._last_yaws = None

    def events(self) -> list[Event]:
        """Events since the last call."""
        events, self._events = self._events, []
        return events

    def arrives(self, estimate: PoseEstimate, odometry_ns: int | None) -> bool:
        """Whether an estimate is valid by itself; ``odometry_ns`` is odometry's newest stamp."""
        stamp_ns, pose, limits = estimate.stamp_ns, estimate.pose, self._limits
        self.why = ""
        newest_ns = self._newest_ns
        if newest_ns is not None and stamp_ns < newest_ns - seconds_to_ns(limits.late_s):
            back_s = ns_to_seconds(newest_ns - stamp_ns)
            return self.refuse(stamp_ns, "clock_went_back", f"a stamp is {back_s:.3f} s older than the newest one")
        if odometry_ns is not None and stamp_ns > odometry_ns + seconds_to_ns(limits.ahead_s):
            ahead_s = ns_to_seconds(stamp_ns - odometry_ns)
            return self.refuse(stamp_ns, "clock_ahead", f"a stamp is {ahead_s:.3f} s ahead of odometry's")
        self._newest_ns = stamp_ns if newest_ns is None else max(newest_ns, stamp_ns)
        self._reported -= {"clock_went_back", "clock_ahead"}
        if estimate.status is not PoseStatus.OK:
            return self.refuse(stamp_ns, "no_fix", "the source reports that it has lost the robot")
        if "no_fix" in self._reported:
            self._reported.discard("no_fix")
            self._events.append(Event(stamp_ns, self._name, "fix", "the source tracks the robot again"))
        heading_known = math.isfinite(estimate.covariance[2, 2])
        if not all(map(math.isfinite, (pose.x_m, pose.y_m, pose.yaw_rad if heading_known else 0.0))):
            return self.refuse(stamp_ns, "not_finite", f"a pose is ({pose.x_m}, {pose.y_m}, {pose.yaw_rad})")
        self._reported.discard("not_finite")
        return self._is_in_map(stamp_ns, pose.x_m, pose.y_m)

    def admit(self, measurement: MeasuredPoint, sample: OdometryPose) -> bool:
        """Whether a measurement may be used, given odometry at its stamp; called in the order of arrival."""
        self._reported.discard("bad_covariance")
        if self._is_frozen(measurement, sample):
            return False
        self._compare(measurement, sample)
        return not self.broken

    def refuse(self, stamp_ns: int, kind: str, detail: str) -> bool:
        """Return False; report the event once until the condition ends."""
        self.why = detail
        if kind not in self._reported:
            self._reported.add(kind)
            self._events.append(Event(stamp_ns, self._name, kind, detail))
        return False

    def _is_in_map(self, stamp_ns: int, x_m: float, y_m: float) -> bool:
        if self._bounds is None:
            return True
        x0, y0, x1, y1 = self._bounds
        margin_m = self._limits.margin_m
        if x0 - margin_m <= x_m <= x1 + margin_m and y0 - margin_m <= y_m <= y1 + margin_m:
            self._reported.discard("out_of_map")
            return True
        detail = (
            f"a position is ({x_m:.2f}, {y_m:.2f}) m, the map reaches from ({x0:.2f}, {y0:.2f}) to ({x1:.2f}, {y1:.2f})"
        )
        return self.refuse(stamp_ns, "out_of_map", detail)

    def _is_frozen(self, measurement: MeasuredPoint, sample: OdometryPose) -> bool:
        first = self._repeated
        if first is None or not _is_same(first[0], measurement):
            self._repeated, self.frozen_since_ns = (measurement, sample), None
            self._reported.discard("frozen")
            return False
        moved_m = abs(_point_by_odometry(measurement, sample) - _point_by_odometry(first[0], first[1]))
        turned_deg = math.degrees(abs(sample[2] - first[1][2])) if measurement.yaw_rad is not None else 0.0
        moved = moved_m > max(self._limits.moved_m, 5 * measurement.std_m)
        if self.frozen_since_ns is None and not moved and turned_deg <= self._limits.turned_deg:
            return False
        self.frozen_since_ns = first[0].stamp_ns
        at = f"({measurement.x_m:.3f}, {measurement.y_m:.3f}) m"
        how = f"moved {moved_m:.2f} m and turned {turned_deg:.0f} degrees"
        detail = f"new stamps, but the pose stays at {at} although the robot {how}"
        self.refuse(measurement.stamp_ns, "frozen", detail)
        return True

    # --- the source's frame against odometry's ----------------------------------------------------------------------

    def _compare(self, measurement: MeasuredPoint, sample: OdometryPose) -> None:
        driven = _point_by_odometry(measurement, sample)
        self._newest = (driven, complex(measurement.x_m, measurement.y_m))
        self._check_unit(measurement.stamp_ns, *self._newest)
        if not self._path or abs(driven - self._path[-1][1]) >= PAIR_M:
            self._path.append((self._segment, driven, complex(measurement.x_m, measurement.y_m)))
            self._check_path(measurement.stamp_ns)
        if measurement.yaw_rad is not None:
            last = self._last_yaws
            if last is None:
                self._last_yaws = (sample[2], measurement.yaw_rad)
            elif abs(sample[2] - last[0]) >= PAIR_RAD:
                self._last_yaws = (sample[2], measurement.yaw_rad)
                self._turns.append((sample[2] - last[0], wrap_angle(measurement.yaw_rad - last[1])))
                self._check_turns(measurement.stamp_ns)

    def _check_unit(self, stamp_ns: int, driven: complex, measured: complex) -> None:
        """Find a wrong unit by the ratios of short strides, before a path long enough for a fit was driven."""
        strides = self._strides
        if strides and abs(driven - strides[-1][0]) < UNIT_STRIDE_M:
            return
        strides.append((driven, measured))
        if len(strides) <= UNIT_STRIDES or self.broken:
            return
        pairs = [*pairwise(strides), (strides[0], strides[-1])]
        factors = [abs(b[1] - a[1]) / max(abs(b[0] - a[0]), UNIT_STRIDE_M) for a, b in pairs]
        if min(factors) > UNIT_FACTOR and max(factors) < 2 * min(factors):
            self._break(stamp_ns, "scale", _scale_detail(factors[-1]))

    def _check_path(self, stamp_ns: int) -> None:
        if len(self._path) < MIN_PAIRS or self.broken:
            return
        segments = np.array([segment - self._path[0][0] for segment, _, _ in self._path])
        driven, measured = np.array([pair[1:] for pair in self._path]).T
        failure = _wrong_frame(driven, measured, segments)
        if failure is not None and (jumps := self._jumps()):
            # A single jump looks like a scale error until the filter has relocalized, so split the path at jumps.
            failure = _wrong_frame(driven, measured, segments + np.searchsorted(jumps, np.arange(len(driven)), "right"))
        if failure is not None:
            self._break(stamp_ns, *failure)

    def _jumps(self) -> list[int]:
        """Indices of the positions that lie too far from the one before; the newest position is one beyond the path."""
        points = [(driven, measured) for _, driven, measured in self._path] + ([self._newest] if self._newest else [])
        strides = [(abs(b[0] - a[0]), abs(b[1] - a[1])) for a, b in pairwise(points)]
        usual = median([measured / driven for driven, measured in strides if driven >= PAIR_M] or [1.0])
        return [i for i, (driven, measured) in enumerate(strides, 1) if measured > 2 * usual * driven + JUMP_M]

    def _check_turns(self, stamp_ns: int) -> None:
        driven, measured = np.array(self._turns).T
        if abs(driven).sum() >= MIN_TURNED_RAD and not self.broken:
            sense = float((driven * measured).sum() / (driven * driven).sum())
            if sense < -0.5:
                detail = "its headings turn the wrong way against odometry: an axis or the sense of angles is flipped"
                self._break(stamp_ns, "mirrored", detail)

    def _break(self, stamp_ns: int, kind: str, detail: str) -> None:
        self.broken = detail
        self._events.append(Event(stamp_ns, self._name, kind, detail))


def _wrong_frame(
    driven: NDArray[np.complex128], measured: NDArray[np.complex128], segments: NDArray[np.int_]
) -> tuple[str, str] | None:
    """The defect of the measured frame as kind and detail of an event; None if there is none."""
    if float(np.sqrt(np.mean(abs(_centered(driven, segments)) ** 2))) < MIN_SPREAD_M:
        return None
    scale, fit, path = _similarity(driven, measured, segments)
    mirrored_scale, mirrored_fit, _ = _similarity(driven.conj(), measured, segments)
    best = max(scale, mirrored_scale) if max(fit, mirrored_fit) >= MIN_FIT else None
    if path < MIN_EXTENT or (best is not None and not SCALES[0] <= best <= SCALES[1]):
        factor = path if best is None else best
        return "scale", _scale_detail(factor)
    if mirrored_fit >= MIN_FIT and 1 - fit > 4 * (1 - mirrored_fit) + 0.05:
        return "mirrored", "its positions turn the wrong way against odometry: an axis is flipped"
    return None


def _scale_detail(factor: float) -> str:
    hints = {
        3: ": millimeters are taken for meters",
        2: ": centimeters are taken for meters",
        -3: ": meters are taken for millimeters",
    }
    hint = hints.get(round(math.log10(factor)), "") if factor > 0 else ""
    return f"its positions move {factor:.3g} m per meter of odometry{hint}"


def _similarity(
    driven: NDArray[np.complex128], measured: NDArray[np.complex128], segments: NDArray[np.int_]
) -> tuple[float, float, float]:
    """Align a measured path with the driven one.

    Args:
        driven: positions by odometry.
        measured: positions by the source.
        segments: number of the segment of each position; segments may be shifted against each other.

    Returns:
        Scale of the best similarity, fraction of the variance that it explains, and extent of the measured path in
        units of the driven one's; all on the four fifths of the positions that fit best.
    """
    keep = np.ones(len(driven), bool)
    for _ in range(3):
        p, w = _centered(driven, segments, keep), _centered(measured, segments, keep)
        a = complex((w * p.conj())[keep].sum() / (abs(p[keep]) ** 2).sum())
        off = abs(w - a * p)
        keep = off <= np.quantile(off, 0.8)
    p, w = _centered(driven, segments, keep)[keep], _centered(measured, segments, keep)[keep]
    extent, there = float((abs(p) ** 2).sum()), float((abs(w) ** 2).sum())
    product = abs(complex((w * p.conj()).sum()))
    fit = product**2 / (extent * there) if there > 0 else 0.0
    return product / extent, fit, math.sqrt(there / extent)


def _centered(
    values: NDArray[np.complex128], segments: NDArray[np.int_], keep: NDArray[np.bool_] | None = None
) -> NDArray[np.complex128]:
    """Positions relative to the mean of their segment over those in ``keep``."""
    weights = np.ones(len(values)) if keep is None else keep.astype(float)
    count = np.maximum(np.bincount(segments, weights), 1)
    middle = (np.bincount(segments, weights * values.real) + 1j * np.bincount(segments, weights * values.imag)) / count
    result: NDArray[np.complex128] = values - middle[segments]
    return result


def _is_same(a: MeasuredPoint, b: MeasuredPoint) -> bool:
    turned = 0.0 if a.yaw_rad is None or b.yaw_rad is None else abs(wrap_angle(a.yaw_rad - b.yaw_rad))
    return abs(a.x_m - b.x_m) <= SAME and abs(a.y_m - b.y_m) <= SAME and turned <= SAME


def _point_by_odometry(measurement: MeasuredPoint, sample: OdometryPose) -> complex:
    """The measured point according to odometry."""
    return complex(sample[0], sample[1]) + complex(*measurement.lever_m) * cmath.rect(1.0, sample[2])
