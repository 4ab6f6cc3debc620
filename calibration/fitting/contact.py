"""Contact behavior (stop or slide) and contact radius of a robot, from forward actions into walls of the map.

The two hypotheses predict different end positions. A stopping robot ends on its line at the touch. A sliding one
(Habitat's ``allow_sliding``) continues along the wall by the projection of its remaining path. The wall's position and
direction are known within the map's cells and integrated out; both hypotheses allow for outliers. The sum of the log
ratios of the two densities decides. Head-on contacts are excluded, because both hypotheses predict the same. Ends near
another end are counted once, so that a corner missing in the map is not counted at every attempt.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.actions import RESAMPLES, Size
from calibration.fitting.log_samples import LoggedAction, LoggedEpisode
from calibration.fitting.map_distance import Walls
from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import BaseState, Zone
from robot_runtime.records import Outcome
from robot_runtime.robots.action_errors import ActuationModel, ContactBehavior
from robot_runtime.scoring.statistics.intervals import Interval

Array = NDArray[np.float64]

MIN_CONTACTS = 5
"""Least number of informative contacts, all at different places."""

MIN_MEASURED = 8
"""Least number of measurements of the radius, and of the travel after touch."""

DECISIVE_NATS = math.log(1000.0)
"""Log ratio, nats, below which neither hypothesis is accepted."""

OUTLIER_SHARE = 0.05
"""Share of contacts with obstacles that the map does not contain."""

WALL_M, WALL_RAD = 0.03, math.radians(12)
"""Standard deviations of a wall's position and direction on a map of 2.5 cm cells."""

BLUR_M = 0.008
"""Standard deviation of an end beyond the action's error: walls are not straight, robots not round."""

TOUCHES_M = 0.02
"""Least penetration of a wall, by the map, of an action that counts as a contact."""

MIN_SLOPE = 0.15
"""Least decrease of the distance to a wall per meter of path; 0 is along the wall."""

HEAD_ON_RAD = math.radians(70)
"""Angle of incidence beyond which a robot hardly slides, in a direction that the map does not determine."""

CORNER_M = 0.02
"""Difference of distance beyond which a nearer wall is another one than that along which the robot slides."""

TELLING_NATS = 1.0
"""Least log ratio of an informative contact, nats."""

SHORT = 4.0
"""Standard deviations of path length by which an action at an obstacle is too short."""

MAX_RADII = 2.0
"""Greatest distance to a wall in radii of the robot; farther obstacles are not on the map."""

STILL_M_S = 0.005

PLACES, DIRECTIONS = 25, 9


@dataclass(frozen=True, eq=False)
class Contact:
    """One forward action into an obstacle.

    Attributes:
        end: float64 (2,), end position, m forward and left of the start, along the intended heading.
        touch_m: distance to the touch by the map.
        wall_rad: direction of sliding relative to the heading, left positive, within a quarter turn.
        noise: float64 (2, 2), covariance of the referee.
        felt: whether the robot reported it: by its bumper, or as a simulated one that slides.
        log_ratio: log likelihood ratio of slide to stop, nats; 0 for head-on contacts, or near another wall.
    """

    episode: int
    step: int
    end: Array
    touch_m: float
    wall_rad: float
    noise: Array
    felt: bool
    log_ratio: float


@dataclass(frozen=True)
class ContactFit:
    """Contact behavior of the robot.

    Attributes:
        behaviour: None if unknown.
        reason: why it is unknown.
        contacts: contacts at different places.
        log_ratio: log likelihood ratio of slide to stop over all contacts, nats.
        felt: number of contacts that the robot reported.
        shortfall_m: median difference between intended and actual path length.
        travel_m: travel from the bumper's first report to rest, by odometry, with its interval; None without such
            contacts.
        radius_m: distance from the robot's center to the map's wall at contact, median and interval; None with too few
            contacts. The interval includes a diagonal of the map's cells: an obstacle may fill a corner of one only.
    """

    behaviour: Literal["stop", "slide"] | None
    reason: str
    contacts: tuple[Contact, ...]
    log_ratio: float
    felt: int
    shortfall_m: float | None
    travel_m: Interval | None
    radius_m: Interval | None

    @property
    def telling(self) -> int:
        """Number of informative contacts."""
        return sum(abs(contact.log_ratio) > TELLING_NATS for contact in self.contacts)

    @property
    def model(self) -> ContactBehavior | None:
        """The behavior as in a robot's file; None if it is unknown."""
        if self.behaviour is None:
            return None
        travel_m = None if self.travel_m is None else self.travel_m.mean
        radius_m = None if self.radius_m is None else self.radius_m.mean
        return ContactBehavior(self.behaviour, self.telling, self.log_ratio, travel_m, radius_m)


def fit_contact(
    episodes: Sequence[LoggedEpisode], walls: Mapping[str, Walls], size: Size, model: ActuationModel
) -> ContactFit:
    """Fit the contact behavior to logs."""
    touching = [
        (number, logged, walls[episode.header.scene.digest])
        for number, episode in enumerate(episodes)
        for logged in episode.actions
        if logged.action is Action.MOVE_FORWARD and logged.seen and size.matches(logged.action, logged.result.commanded)
    ]
    radius_m = _radius(touching, size, model)
    contacts: list[Contact] = []
    ends: dict[Walls, list[SE2]] = {}
    for number, logged, near in touching:
        made = _contact(number, logged, near, near.radius_m if radius_m is None else radius_m.mean, size, model)
        assert logged.after.stationary is not None
        end, others = logged.after.stationary.truth, ends.setdefault(near, [])
        if made is not None and not any(_is_same(end, other) for other in others):
            contacts.append(made)
            others.append(end)
    felt = sum(contact.felt for contact in contacts)
    travel_m = _travel([episode.base for episode in episodes])
    total = math.fsum(contact.log_ratio for contact in contacts)
    shortfall_m = float(np.median([size.forward_m - contact.end[0] for contact in contacts])) if contacts else None
    telling = sum(abs(contact.log_ratio) > TELLING_NATS for contact in contacts)
    behaviour: Literal["stop", "slide"] | None = None
    reason = ""
    if len(contacts) < MIN_CONTACTS:
        reason = f"not enough contacts: {len(contacts)}, {MIN_CONTACTS} are needed"
    elif telling < MIN_CONTACTS:
        reason = (
            f"not enough contacts: {telling} of {len(contacts)} distinguish stopping from sliding, "
            f"{MIN_CONTACTS} are needed"
        )
    elif abs(total) < DECISIVE_NATS:
        reason = f"{len(contacts)} contacts do not agree whether it stops or slides (log likelihood {total:+.1f})"
    else:
        behaviour = "slide" if total > 0 else "stop"
    return ContactFit(behaviour, reason, tuple(contacts), total, felt, shortfall_m, travel_m, radius_m)


def log_ratio(end: Array, touch_m: float, wall_rad: float, path_length_m: float, covariance: Array) -> float:
    """Return the log ratio of an end's densities under sliding and stopping, nats.

    Args:
        end: float64 (2,), m forward and left.
        touch_m: distance to the touch by the map.
        wall_rad: direction of sliding relative to the heading.
        path_length_m: path length without contact.
        covariance: float64 (2, 2), of an end.
    """
    places_m = np.clip(touch_m + WALL_M * np.linspace(-2.5, 2.5, PLACES), 0.0, path_length_m)
    place_weights = _weights(PLACES)
    stops = np.stack([places_m, np.zeros(PLACES)], axis=-1)
    angles = wall_rad + WALL_RAD * np.linspace(-2.5, 2.5, DIRECTIONS)
    # The remaining path, projected on the wall.
    slid_m = (path_length_m - places_m)[:, None] * np.cos(angles)
    slides = np.stack([places_m[:, None] + slid_m * np.cos(angles), slid_m * np.sin(angles)], axis=-1)
    stopped = _density(end - stops, covariance) @ place_weights
    slid = _weights(PLACES) @ _density(end - slides, covariance) @ _weights(DIRECTIONS)
    anywhere = 1 / (math.pi * path_length_m**2 / 2)
    outlying = OUTLIER_SHARE * anywhere
    return float(np.log((1 - OUTLIER_SHARE) * slid + outlying) - np.log((1 - OUTLIER_SHARE) * stopped + outlying))


def _contact(
    number: int, logged: LoggedAction, walls: Walls, radius_m: float, size: Size, model: ActuationModel
) -> Contact | None:
    """Return the contact of an action; None without an obstacle on its path by the map."""
    assert logged.before.stationary is not None
    heading = logged.before.stationary.truth @ SE2(0.0, 0.0, logged.carried_rad)
    error = model.actions["move_forward"]
    path_length_m = size.forward_m + error.mean[0]
    touch_m = touch_distance_m(walls, heading, path_length_m, radius_m)
    if touch_m is None or path_length_m - touch_m < TOUCHES_M:
        return None
    away_x, away_y = walls.away(*heading.apply(touch_m + radius_m / 2, 0.0))
    if (away_x, away_y) == (0.0, 0.0):
        return None
    # Along the wall, to the side that lies ahead.
    wall_rad = math.remainder(math.atan2(away_y, away_x) + math.pi / 2 - heading.yaw_rad, math.pi)
    move = logged.move
    end = np.array(SE2(0.0, 0.0, -logged.carried_rad).apply(move.truth.x_m, move.truth.y_m))
    noise = move.noise[:2, :2]
    covariance = error.matrix[:2, :2] + noise + BLUR_M**2 * np.eye(2)
    undecided = abs(wall_rad) > HEAD_ON_RAD or _is_cornered(walls, heading, touch_m, wall_rad, path_length_m, radius_m)
    ratio = 0.0 if undecided else log_ratio(end, touch_m, wall_rad, path_length_m, covariance)
    return Contact(number, logged.step, end, touch_m, wall_rad, noise, logged.result.contact is not Zone.NONE, ratio)


def _is_cornered(
    walls: Walls, heading: SE2, touch_m: float, wall_rad: float, path_length_m: float, radius_m: float
) -> bool:
    """Return whether a sliding robot would be stopped by another wall."""
    slid_m = (path_length_m - touch_m) * math.cos(wall_rad)
    touch = heading @ SE2(touch_m, 0.0, wall_rad)
    return walls.nearest_on_path_m(touch, slid_m) < radius_m - CORNER_M


def touch_distance_m(walls: Walls, start: SE2, path_length_m: float, radius_m: float) -> float | None:
    """Return the distance to the first touch by the map, at most ``path_length_m``; 0 at contact, None without one.

    Walls from which the robot drives away do not count.
    """
    path_lengths_m, distances_m = walls.along(start, path_length_m)
    touching = (distances_m <= radius_m) & (np.gradient(distances_m, path_lengths_m) < -MIN_SLOPE)
    return float(path_lengths_m[int(np.argmax(touching))]) if touching.any() else None


def _radius(touching: Sequence[tuple[int, LoggedAction, Walls]], size: Size, model: ActuationModel) -> Interval | None:
    """Return the distance from the robot's center to the nearest wall at the ends of shortened actions."""
    error = model.actions["move_forward"]
    short_m = size.forward_m + error.mean[0] - SHORT * math.sqrt(error.matrix[0, 0] + BLUR_M**2)
    distances_m = []
    for _, logged, walls in touching:
        move = logged.move
        if logged.result.outcome is Outcome.CONTACT or move.truth.x_m < short_m - SHORT * math.sqrt(move.noise[0, 0]):
            assert logged.after.stationary is not None
            end = logged.after.stationary.truth
            distance_m = float(walls.distance_m(np.array([end.x_m]), np.array([end.y_m]))[0])
            if distance_m < MAX_RADII * walls.radius_m:
                distances_m.append(distance_m)
    if len(distances_m) < MIN_MEASURED:
        return None
    found, diagonal_m = median(distances_m), math.sqrt(2) * max(walls.cell_m for _, _, walls in touching)
    return Interval(found.mean, found.low - diagonal_m, found.high + diagonal_m)


def median(values: Sequence[float]) -> Interval:
    """Return the median with its 95 % bootstrap interval."""
    drawn = np.random.default_rng(0).choice(np.asarray(values), (RESAMPLES, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return Interval(float(np.median(values)), float(low), float(high))


def _is_same(a: SE2, b: SE2) -> bool:
    """Return whether two ends are at the same obstacle."""
    return a.distance_to(b) < WALL_M and abs(wrap_angle(a.yaw_rad - b.yaw_rad)) < WALL_RAD


def _travel(base: Sequence[Sequence[BaseState]]) -> Interval | None:
    """Return the distance by odometry from the first report of a pressed bumper to rest."""
    travels_m = []
    for states in base:
        pressed_at: SE2 | None = None
        for before, after in pairwise(states):
            if after.bumper is not Zone.NONE and before.bumper is Zone.NONE and after.velocity.linear_m_s > 0:
                pressed_at = after.odom
            elif pressed_at is not None and after.velocity.linear_m_s <= STILL_M_S:
                travels_m.append(after.odom.distance_to(pressed_at))
                pressed_at = None
    return median(travels_m) if len(travels_m) >= MIN_MEASURED else None


def _weights(count: int) -> Array:
    weights = np.exp(-0.5 * np.linspace(-2.5, 2.5, count) ** 2)
    return np.asarray(weights / weights.sum())


def _density(off: Array, covariance: Array) -> Array:
    """Return the density of a bivariate normal distribution at (..., 2)."""
    squared = np.einsum("...i,ij,...j->...", off, np.linalg.inv(covariance), off)
    return np.asarray(np.exp(-0.5 * squared) / (2 * math.pi * math.sqrt(np.linalg.det(covariance))))
