"""Is a source of poses what it claims to be? Each way in which it may not be is told from the others, and named.

==================  ===================================================================  ==============================
event               seen by                                                              then
==================  ===================================================================  ==============================
``no_fix``          the source says that it has lost the robot                           waits for ``fix``
``not_finite``      a pose with NaN or infinity                                          refused
``bad_covariance``  what stands for a covariance is none                                 refused
``clock_went_back``  a stamp older than the newest one by more than lateness explains     refused
``clock_ahead``     a stamp far ahead of odometry's                                      refused
``out_of_map``      a position outside the scene's map                                   refused
``frozen``          the same numbers again although odometry moved on                    refused until they change
``mirrored``        positions or headings turn the wrong way against odometry            all are refused
``scale``           the way in the source's frame is not the way that odometry measured  all are refused
==================  ===================================================================  ==============================

The last two are found by laying the way that was measured on odometry's, once as it is and once mirrored, with a free
scale (in complex numbers, a similarity is a product: ``w = a p`` or ``w = a conj(p)``), on the four fifths of the
points that fit best, so that outliers neither hide them nor look like them.
"""

from __future__ import annotations

import cmath
import math
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.hal.events import Event
from robot_runtime.localization.gaussian_pose import Measurement
from robot_runtime.localization.odometry_preintegration import OdometrySample

SAME = 1e-6
"""Meters and radians within which two measurements count as the same numbers."""

KEPT_PAIRS = 40
MIN_PAIRS = 10
PAIR_M = 0.1
"""Positions are compared with odometry's at least so far apart on the way: 4 m of it."""
MIN_SPREAD_M = 0.3
"""Root mean square distance of those positions from their middle, before anything is concluded."""
SCALES = (0.67, 1.5)
MIN_FIT = 0.8
"""Fraction of the measured way's variance that a similarity must explain, to be concluded from."""
HARDLY = 0.2
"""Positions that move by less than this fraction of odometry's way have no scale at all."""

JUMP_M = 0.1
"""Beyond twice the usual way between two positions: five standard deviations of their noise."""

PAIR_RAD = math.radians(20)
MIN_TURNED_RAD = math.radians(150)

Bounds = tuple[float, float, float, float]


@dataclass(frozen=True)
class HealthLimits:
    """When a source of poses is doubted.

    Attributes:
        moved_m: way of odometry on which a healthy position must change at least by a digit.
        late_s: how late a measurement may come after newer ones. ahead_s: how far its stamp may be ahead of odometry's.
        margin_m: how far outside the map a position may lie.
    """

    moved_m: float = 0.1
    late_s: float = 5.0
    ahead_s: float = 1.0
    margin_m: float = 3.0

    __pydantic_config__ = config.STRICT


class SourceHealth:
    """The checks of one source. Pure.

    Args:
        name: of the source, for events.
        bounds: x and y of the map's lower left and upper right corner, meters; None if the map is not known.

    Attributes:
        broken: why nothing of this source can be believed any more; empty while it can.
        frozen_since_ns: stamp of the first of the measurements that do not change; None while they do.
    """

    def __init__(self, name: str, limits: HealthLimits, bounds: Bounds | None = None) -> None:
        self._name = name
        self._limits = limits
        self._bounds = bounds
        self._events: list[Event] = []
        self._told: set[str] = set()
        self.clear()

    def clear(self) -> None:
        """The robot was put somewhere else: what was seen before says nothing about what comes."""
        self.broken = ""
        self.frozen_since_ns: int | None = None
        self._newest_ns: int | None = None
        self._told.clear()
        self._held: tuple[Measurement, OdometrySample] | None = None
        self._way: deque[tuple[int, complex, complex]] = deque(maxlen=KEPT_PAIRS)
        self._newest: tuple[complex, complex] | None = None
        self._piece = 0
        """Of the way: between two pieces of it, positions jumped."""
        self._turns: deque[tuple[float, float]] = deque(maxlen=KEPT_PAIRS)
        self._faced: tuple[float, float] | None = None

    def moved(self) -> None:
        """The filter believes the source anew: if its positions jumped, that is neither scale nor mirror.

        If they did not (a mirrored frame drifts away from odometry without any jump), the way stays in one piece.
        """
        jumps = self._jumps()
        if jumps:
            self._piece += 1
            later = [(self._piece if i >= jumps[-1] else pair[0], *pair[1:]) for i, pair in enumerate(self._way)]
            self._way = deque(later, maxlen=KEPT_PAIRS)
            self._faced = None

    def events(self) -> list[Event]:
        """What was found since the last call."""
        events, self._events = self._events, []
        return events

    def arrives(self, estimate: PoseEstimate, odometry_ns: int | None) -> bool:
        """Whether an estimate is one at all, before anything is compared with odometry, whose newest stamp is given."""
        stamp_ns, pose, limits = estimate.stamp_ns, estimate.pose, self._limits
        newest_ns = self._newest_ns
        if newest_ns is not None and stamp_ns < newest_ns - seconds_to_ns(limits.late_s):
            back_s = ns_to_seconds(newest_ns - stamp_ns)
            return self.refuse(stamp_ns, "clock_went_back", f"a stamp is {back_s:.3f} s older than the newest one")
        if odometry_ns is not None and stamp_ns > odometry_ns + seconds_to_ns(limits.ahead_s):
            ahead_s = ns_to_seconds(stamp_ns - odometry_ns)
            return self.refuse(stamp_ns, "clock_ahead", f"a stamp is {ahead_s:.3f} s ahead of odometry's")
        self._newest_ns = stamp_ns if newest_ns is None else max(newest_ns, stamp_ns)
        self._told -= {"clock_went_back", "clock_ahead"}
        if estimate.status is not PoseStatus.OK:
            return self.refuse(stamp_ns, "no_fix", "it says that it has lost the robot")
        if "no_fix" in self._told:
            self._told.discard("no_fix")
            self._events.append(Event(stamp_ns, self._name, "fix", "it sees the robot again"))
        heading_known = math.isfinite(estimate.covariance[2, 2])
        if not all(map(math.isfinite, (pose.x_m, pose.y_m, pose.yaw_rad if heading_known else 0.0))):
            return self.refuse(stamp_ns, "not_finite", f"a pose is ({pose.x_m}, {pose.y_m}, {pose.yaw_rad})")
        self._told.discard("not_finite")
        return self._in_map(stamp_ns, pose.x_m, pose.y_m)

    def admit(self, fix: Measurement, waypoint: OdometrySample) -> bool:
        """Whether a measurement may be folded in, seen beside odometry at its instant; in order of arrival."""
        self._told.discard("bad_covariance")
        if self._is_frozen(fix, waypoint):
            return False
        self._compare(fix, waypoint)
        return not self.broken

    def refuse(self, stamp_ns: int, kind: str, detail: str) -> bool:
        """False; the event is told of once, until things are well again."""
        if kind not in self._told:
            self._told.add(kind)
            self._events.append(Event(stamp_ns, self._name, kind, detail))
        return False

    def _in_map(self, stamp_ns: int, x_m: float, y_m: float) -> bool:
        if self._bounds is None:
            return True
        x0, y0, x1, y1 = self._bounds
        margin_m = self._limits.margin_m
        if x0 - margin_m <= x_m <= x1 + margin_m and y0 - margin_m <= y_m <= y1 + margin_m:
            self._told.discard("out_of_map")
            return True
        detail = (
            f"a position is ({x_m:.2f}, {y_m:.2f}) m, the map reaches from ({x0:.2f}, {y0:.2f}) to ({x1:.2f}, {y1:.2f})"
        )
        return self.refuse(stamp_ns, "out_of_map", detail)

    def _is_frozen(self, fix: Measurement, waypoint: OdometrySample) -> bool:
        held = self._held
        if held is None or not _same(held[0], fix):
            self._held, self.frozen_since_ns = (fix, waypoint), None
            self._told.discard("frozen")
            return False
        moved_m = abs(_marked(fix, waypoint) - _marked(held[0], held[1]))
        if self.frozen_since_ns is None and moved_m > max(self._limits.moved_m, 5 * fix.std_m):
            self.frozen_since_ns = held[0].stamp_ns
            detail = (
                f"fresh stamps, but ({fix.x_m:.3f}, {fix.y_m:.3f}) m again although the robot moved {moved_m:.2f} m"
            )
            self.refuse(fix.stamp_ns, "frozen", detail)
        return self.frozen_since_ns is not None

    # --- the source's frame against odometry's ----------------------------------------------------------------------

    def _compare(self, fix: Measurement, waypoint: OdometrySample) -> None:
        known = _marked(fix, waypoint)
        self._newest = (known, complex(fix.x_m, fix.y_m))
        if not self._way or abs(known - self._way[-1][1]) >= PAIR_M:
            self._way.append((self._piece, known, complex(fix.x_m, fix.y_m)))
            self._judge_way(fix.stamp_ns)
        if fix.dimensions == 3:
            faced = self._faced
            if faced is None:
                self._faced = (waypoint[2], fix.yaw_rad)
            elif abs(waypoint[2] - faced[0]) >= PAIR_RAD:
                self._faced = (waypoint[2], fix.yaw_rad)
                self._turns.append((waypoint[2] - faced[0], wrap_angle(fix.yaw_rad - faced[1])))
                self._judge_turns(fix.stamp_ns)

    def _judge_way(self, stamp_ns: int) -> None:
        if len(self._way) < MIN_PAIRS or self.broken:
            return
        pieces = np.array([piece - self._way[0][0] for piece, _, _ in self._way])
        known, seen = np.array([pair[1:] for pair in self._way]).T
        found = _wrong_frame(known, seen, pieces)
        if found is not None and (jumps := self._jumps()):
            # A single jump looks like a scale until the filter knows of it: it must be wrong without that, too.
            found = _wrong_frame(known, seen, pieces + np.searchsorted(jumps, np.arange(len(known)), "right"))
        if found is not None:
            self._break(stamp_ns, *found)

    def _jumps(self) -> list[int]:
        """Numbers of the positions on the way that lie too far from the one before; the newest is one beyond it."""
        points = [(known, seen) for _, known, seen in self._way] + ([self._newest] if self._newest else [])
        strides = [(abs(b[0] - a[0]), abs(b[1] - a[1])) for a, b in pairwise(points)]
        usual = median([seen / known for known, seen in strides if known >= PAIR_M] or [1.0])
        return [i for i, (known, seen) in enumerate(strides, 1) if seen > 2 * usual * known + JUMP_M]

    def _judge_turns(self, stamp_ns: int) -> None:
        known, seen = np.array(self._turns).T
        if abs(known).sum() >= MIN_TURNED_RAD and not self.broken:
            same_way = float((known * seen).sum() / (known * known).sum())
            if same_way < -0.5:
                detail = "its headings turn the wrong way against odometry: an axis or the sense of angles is flipped"
                self._break(stamp_ns, "mirrored", detail)

    def _break(self, stamp_ns: int, kind: str, detail: str) -> None:
        self.broken = detail
        self._events.append(Event(stamp_ns, self._name, kind, detail))


def _wrong_frame(
    known: NDArray[np.complex128], seen: NDArray[np.complex128], pieces: NDArray[np.int_]
) -> tuple[str, str] | None:
    """What is wrong with the frame of the measured way, as an event's kind and detail; None where nothing is.

    Args:
        pieces: as :func:`_similarity`'s.
    """
    if float(np.sqrt(np.mean(abs(_centered(known, pieces)) ** 2))) < MIN_SPREAD_M:
        return None
    scale, fit, way = _similarity(known, seen, pieces)
    mirrored_scale, mirrored_fit, _ = _similarity(known.conj(), seen, pieces)
    best = max(scale, mirrored_scale) if max(fit, mirrored_fit) >= MIN_FIT else None
    if way < HARDLY or (best is not None and not SCALES[0] <= best <= SCALES[1]):
        factor = way if best is None else best
        unit = {3: ": millimeters are taken for meters", -3: ": meters are taken for millimeters"}
        hint = unit.get(round(math.log10(factor))) if factor > 0 else None
        return "scale", f"its positions move {factor:.3g} m per meter of odometry{hint or ''}"
    if mirrored_fit >= MIN_FIT and 1 - fit > 4 * (1 - mirrored_fit) + 0.05:
        return "mirrored", "its positions turn the wrong way against odometry: an axis is flipped"
    return None


def _similarity(
    known: NDArray[np.complex128], seen: NDArray[np.complex128], pieces: NDArray[np.int_]
) -> tuple[float, float, float]:
    """How a way was measured: scale of the best similarity, fraction of it that this explains, and its plain extent.

    All on the four fifths that fit best; the extent is the measured way's, in units of the known one's.

    Args:
        pieces: number of the piece of the way that each position belongs to; from piece to piece they may be shifted.
    """
    keep = np.ones(len(known), bool)
    for _ in range(3):
        p, w = _centered(known, pieces, keep), _centered(seen, pieces, keep)
        a = complex((w * p.conj())[keep].sum() / (abs(p[keep]) ** 2).sum())
        off = abs(w - a * p)
        keep = off <= np.quantile(off, 0.8)
    p, w = _centered(known, pieces, keep)[keep], _centered(seen, pieces, keep)[keep]
    extent, there = float((abs(p) ** 2).sum()), float((abs(w) ** 2).sum())
    product = abs(complex((w * p.conj()).sum()))
    fit = product**2 / (extent * there) if there > 0 else 0.0
    return product / extent, fit, math.sqrt(there / extent)


def _centered(
    values: NDArray[np.complex128], pieces: NDArray[np.int_], keep: NDArray[np.bool_] | None = None
) -> NDArray[np.complex128]:
    """Positions seen from the middle of their piece, which is the mean of those that are kept."""
    weights = np.ones(len(values)) if keep is None else keep.astype(float)
    count = np.maximum(np.bincount(pieces, weights), 1)
    middle = (np.bincount(pieces, weights * values.real) + 1j * np.bincount(pieces, weights * values.imag)) / count
    result: NDArray[np.complex128] = values - middle[pieces]
    return result


def _same(a: Measurement, b: Measurement) -> bool:
    turned = abs(wrap_angle(a.yaw_rad - b.yaw_rad)) if a.dimensions == 3 else 0.0
    return abs(a.x_m - b.x_m) <= SAME and abs(a.y_m - b.y_m) <= SAME and turned <= SAME


def _marked(fix: Measurement, waypoint: OdometrySample) -> complex:
    """Where odometry has the measured point."""
    return complex(waypoint[0], waypoint[1]) + complex(*fix.lever_m) * cmath.rect(1.0, waypoint[2])
