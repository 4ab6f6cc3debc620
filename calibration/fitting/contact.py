"""Whether the robot stops or slides where something is in its way, and how wide it is where it touches.

A forward action that the map says must touch ends differently under the two hypotheses. If the robot stops, it stands
on its own line, where it touched. If it slides (Habitat's ``allow_sliding``), what was left of its way goes on along
the wall, shortened to its part in that direction. Where along the way the wall is, and which way it faces, the map
says within its cells, so both are integrated out; each hypothesis allows for a few ends that neither explains. The
sum of the logarithms of both densities' ratio decides. Head-on contacts count for nothing: both hypotheses foretell the
same. What ended where another ended, within what the map may be wrong by, is not counted again: a robot that is caught
in a corner which the map does not have would else say so at every try.
"""

from __future__ import annotations

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
"""Contacts that tell stopping from sliding, each at a place of its own."""

MIN_MEASURED = 8
"""Of the radius, and of travel after touch."""

DECISIVE_NATS = math.log(1000.0)
"""Nats, below which neither hypothesis is taken."""

OUTLIER_SHARE = 0.05
"""Share of contacts that neither hypothesis explains: something stood there that the map does not have."""

WALL_M, WALL_RAD = 0.03, math.radians(12)
"""Standard deviations of a wall's place and direction on a map of 2.5 cm cells."""

BLUR_M = 0.008
"""Of an end, beyond the action's own error: walls are not straight, robots not round."""

TOUCHES_M = 0.02
"""So far into a wall an action must lead by the map to count as one that touches."""

MIN_SLOPE = 0.15
"""By how much a wall must come nearer per meter to be driven into: 0 is along it."""

HEAD_ON_RAD = math.radians(70)
"""A robot that meets a wall at a steeper angle hardly slides, and which way, the map does not know."""

CORNER_M = 0.02
"""What is so much nearer than the wall along which it slides is another wall."""

TELLING_NATS = 1.0
"""Nats of a contact that tells stopping from sliding."""

SHORT = 4.0
"""Standard deviations, by which an action that ended at something fell short of its way."""

MAX_RADII = 2.0
"""Of the robot as its task has it: what stopped it farther from any wall is not on the map."""

STILL_M_S = 0.005

PLACES, DIRECTIONS = 25, 9


@dataclass(frozen=True, eq=False)
class Contact:
    """One forward action into something.

    Attributes:
        end: float64 (2,), where it ended, m forward and left of its start, along the intended heading.
        touch_m: how far ahead the map has the wall. wall_rad: the direction in which the robot would slide, from its
            heading, left positive; within a quarter turn.
        noise: float64 (2, 2), the referee's. felt: whether the bumper told.
        log_ratio: of slide to stop, nats; 0 where it met the wall head-on, or another wall is near.
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
    """What the contacts say.

    Attributes:
        behaviour: None where it is not known, and ``reason`` says why.
        log_ratio: of slide to stop, nats, of all contacts.
        felt: how many contacts a bumper told of. shortfall_m: median of what they lack of their way.
        travel_m: from the bumper's first report to rest, by odometry, with its interval; None where none was felt.
        radius_m: distance from the robot's center to the map's wall where it touched: median and interval; None where
            too few contacts ended at a wall.
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
        """How many contacts tell the two apart."""
        return sum(abs(contact.log_ratio) > TELLING_NATS for contact in self.contacts)

    @property
    def model(self) -> ContactBehavior | None:
        """As a robot's file has it; None where the behaviour is not known."""
        if self.behaviour is None:
            return None
        travel_m = None if self.travel_m is None else self.travel_m.mean
        radius_m = None if self.radius_m is None else self.radius_m.mean
        return ContactBehavior(self.behaviour, self.telling, self.log_ratio, travel_m, radius_m)


def fit_contact(
    episodes: Sequence[LoggedEpisode], walls: Mapping[str, Walls], size: Size, model: ActuationModel
) -> ContactFit:
    """What the logs' contacts say.

    Args:
        walls: by the digest of the scene. model: of free motion, which says how far an action goes undisturbed.
    """
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
        found = _contact(number, logged, near, near.radius_m if radius_m is None else radius_m.mean, size, model)
        assert logged.after.stationary is not None
        end, others = logged.after.stationary.truth, ends.setdefault(near, [])
        if found is not None and not any(_is_same(end, other) for other in others):
            contacts.append(found)
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
            f"not enough contacts: of {len(contacts)}, {telling} tell stopping from sliding, {MIN_CONTACTS} are needed"
        )
    elif abs(total) < DECISIVE_NATS:
        reason = f"{len(contacts)} contacts do not agree whether it stops or slides ({total:+.1f} nats)"
    else:
        behaviour = "slide" if total > 0 else "stop"
    return ContactFit(behaviour, reason, tuple(contacts), total, felt, shortfall_m, travel_m, radius_m)


def log_ratio(end: Array, touch_m: float, wall_rad: float, path_length_m: float, covariance: Array) -> float:
    """Logarithm of how much more probable an end is if the robot slides than if it stops, nats.

    Args:
        end: float64 (2,), m forward and left. path_length_m: how far it would have gone.
        covariance: float64 (2, 2), of an end.
    """
    places_m = np.clip(touch_m + WALL_M * np.linspace(-2.5, 2.5, PLACES), 0.0, path_length_m)
    place_weights = _weights(PLACES)
    stops = np.stack([places_m, np.zeros(PLACES)], axis=-1)
    angles = wall_rad + WALL_RAD * np.linspace(-2.5, 2.5, DIRECTIONS)
    # What is left of the way, projected on the wall; of a wall that leans away it is the other side's direction.
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
    """None for an action in whose way, by the map, nothing is."""
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
    """Whether a robot that slides would be stopped all the same, by the next wall."""
    slid_m = (path_length_m - touch_m) * math.cos(wall_rad)
    touch = heading @ SE2(touch_m, 0.0, wall_rad)
    return walls.nearest_on_path_m(touch, slid_m) < radius_m - CORNER_M


def touch_distance_m(walls: Walls, start: SE2, path_length_m: float, radius_m: float) -> float | None:
    """Return the distance to the first touch by the map, at most ``path_length_m``; 0 at contact, None without one.

    A robot that drives away from what it touches does not touch it.
    """
    path_lengths_m, distances_m = walls.along(start, path_length_m)
    touching = (distances_m <= radius_m) & (np.gradient(distances_m, path_lengths_m) < -MIN_SLOPE)
    return float(path_lengths_m[int(np.argmax(touching))]) if touching.any() else None


def _radius(touching: Sequence[tuple[int, LoggedAction, Walls]], size: Size, model: ActuationModel) -> Interval | None:
    """Distance from the center to the map's nearest wall where actions ended that fell short of their way."""
    error = model.actions["move_forward"]
    short_m = size.forward_m + error.mean[0] - SHORT * math.sqrt(error.matrix[0, 0] + BLUR_M**2)
    found = []
    for _, logged, walls in touching:
        move = logged.move
        if logged.result.outcome is Outcome.CONTACT or move.truth.x_m < short_m - SHORT * math.sqrt(move.noise[0, 0]):
            assert logged.after.stationary is not None
            end = logged.after.stationary.truth
            distance_m = float(walls.distance_m(np.array([end.x_m]), np.array([end.y_m]))[0])
            if distance_m < MAX_RADII * walls.radius_m:
                found.append(distance_m)
    return median(found) if len(found) >= MIN_MEASURED else None


def median(values: Sequence[float]) -> Interval:
    """The median with its 95 % bootstrap interval."""
    drawn = np.random.default_rng(0).choice(np.asarray(values), (RESAMPLES, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return Interval(float(np.median(values)), float(low), float(high))


def _is_same(a: SE2, b: SE2) -> bool:
    """Whether what held a robot here is what held it there: it tells the same once more."""
    return a.distance_to(b) < WALL_M and abs(wrap_angle(a.yaw_rad - b.yaw_rad)) < WALL_RAD


def _travel(base: Sequence[Sequence[BaseState]]) -> Interval | None:
    """By odometry, from the first report of a pressed bumper to rest."""
    found = []
    for states in base:
        pressed_at: SE2 | None = None
        for before, after in pairwise(states):
            if after.bumper is not Zone.NONE and before.bumper is Zone.NONE and after.velocity.linear_m_s > 0:
                pressed_at = after.odom
            elif pressed_at is not None and after.velocity.linear_m_s <= STILL_M_S:
                found.append(after.odom.distance_to(pressed_at))
                pressed_at = None
    return median(found) if len(found) >= MIN_MEASURED else None


def _weights(count: int) -> Array:
    weights = np.exp(-0.5 * np.linspace(-2.5, 2.5, count) ** 2)
    return np.asarray(weights / weights.sum())


def _density(off: Array, covariance: Array) -> Array:
    """Of a plane normal distribution at (..., 2)."""
    squared = np.einsum("...i,ij,...j->...", off, np.linalg.inv(covariance), off)
    return np.asarray(np.exp(-0.5 * squared) / (2 * math.pi * math.sqrt(np.linalg.det(covariance))))
