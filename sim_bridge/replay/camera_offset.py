"""How far the camera really is from where the log says, from depth against the twin's: tilt, pan, roll and place.

A camera that is tilted by two degrees makes depth wrong in every image in the same way. So all images of an episode are
asked for the one rotation and shift that brings what was recorded onto the twin's surfaces: least squares of the
distances from points to planes (Chen and Medioni 1992), each point against the surface that the twin has at its pixel.
On a plane that surface is the right one even where the pixel is not; what lies near edges is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import optical_axes
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens

Floats = NDArray[np.float64]

POINTS = 3000
"""Of an image, evenly over it."""

REACH = 1 / 32
"""Of the image's width: to the neighbours that a surface's direction is taken from."""

CURVED = 0.003
"""Of the depth: a surface that bends by more between its neighbours is an edge, or round. The twin's depth has no noise
that would hide it, but whole millimetres."""

FARTHEST_M = 6.0
FIRST_GATE, NOISES, CLOSEST = 0.15, 3.0, 0.001
"""Of the depth: points farther from their surface than the gate, or than so many typical distances, are left out."""

ROUNDS = 12
LEAST_POINTS = 500

DISTANCE_M = 0.5
"""Between distances at which the bias of depth is told."""

LEAST_FACING = 0.2
"""Cosine between a ray and a surface's normal: depth on what is seen more obliquely tells of angles, not of itself."""

UNKNOWN_RAD, UNKNOWN_M = math.radians(30), 1.0
"""Standard deviations of what nothing was seen of: they exclude nothing real, and keep the system solvable."""

SURE_RAD, SURE_M = math.radians(0.5), 0.03
"""What is not known as well as this is not told."""


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error, which is over images, not over their pixels."""

    value: float
    error: float


@dataclass(frozen=True)
class DepthBias:
    """What depth near one distance is off by when the camera's offset is accounted for.

    Attributes:
        depth_m: median of the twin's. bias_mm: median of measured less true depth. points: that it is of.
    """

    depth_m: float
    bias_mm: float
    points: int


@dataclass(frozen=True)
class CameraOffset:
    """The true camera seen from the logged one; None where the images do not tell.

    A referee that is off by the same amount in every image shows here, too: in pan, forward and left.

    Attributes:
        tilt_deg: up positive. pan_deg: left positive. roll_deg: to the right positive.
        forward_mm, left_mm, up_mm: along the robot's axes.
        images: that were used.
        biases: of depth, near to far: what no offset explains. A camera that measures everything too far and one that
            sits farther back look much the same, so offset and biases together are what was seen.
    """

    tilt_deg: Estimate | None
    pan_deg: Estimate | None
    roll_deg: Estimate | None
    forward_mm: Estimate | None
    left_mm: Estimate | None
    up_mm: Estimate | None
    images: int
    biases: tuple[DepthBias, ...] = ()


@dataclass(frozen=True)
class Surfaces:
    """What one image contributes: points as recorded and the twin's planes at their pixels, in the optical frame.

    Attributes:
        points: float64 (N, 3). normals: float64 (N, 3), of length 1. offsets: float64 (N,), normals . plane.
        levelled: float64 (3, 3), takes directions along the robot's axes to the optical frame.
    """

    points: Floats
    normals: Floats
    offsets: Floats
    levelled: Floats


def surfaces(
    recorded_m: NDArray[np.float32], twin_m: NDArray[np.float32], pinhole: Intrinsics, pan_rad: float, tilt_rad: float
) -> Surfaces:
    """The points of one image that lie on smooth surfaces.

    Args:
        recorded_m, twin_m: float32 (H, W), 0 where nothing is seen. pan_rad, tilt_rad: of the head.
    """
    stride, reach = max(1, round(math.sqrt(twin_m.size / POINTS))), max(1, round(REACH * pinhole.width))
    grid = np.mgrid[reach : pinhole.height - reach : stride, reach : pinhole.width - reach : stride]
    rows, columns = grid.reshape(2, -1)
    lens = Lens.of(pinhole)

    def seen(down: int, right: int) -> tuple[Floats, Floats]:
        depth_m = twin_m[rows + down, columns + right].astype(np.float64)
        rays = lens.rays(np.stack([columns + right, rows + down], axis=1))
        return depth_m, np.asarray(rays * depth_m[:, None])

    depth_m, middle = seen(0, 0)
    left, right, above, below = (seen(*step) for step in ((0, -reach), (0, reach), (-reach, 0), (reach, 0)))
    taken = recorded_m[rows, columns].astype(np.float64)
    smooth = (taken > 0) & (depth_m > 0) & (depth_m < FARTHEST_M)
    for before, after in ((left, right), (above, below)):
        # Along a plane, it is the inverse of depth that is linear in the image.
        with np.errstate(divide="ignore", invalid="ignore"):
            bend = depth_m * np.abs(1 / before[0] + 1 / after[0] - 2 / depth_m)
        smooth &= (before[0] > 0) & (after[0] > 0) & (bend < CURVED)
    normals = np.cross(right[1] - left[1], below[1] - above[1])[smooth]
    lengths = np.linalg.norm(normals, axis=1)
    flat = lengths > 0
    normals = normals[flat] / lengths[flat, None]
    planes = middle[smooth][flat]
    rays = planes / planes[:, 2:]
    return Surfaces(
        rays * taken[smooth][flat, None],
        normals,
        np.einsum("ij,ij->i", normals, planes),
        optical_axes(pan_rad, tilt_rad).T,
    )


def camera_offset(images: Sequence[Surfaces]) -> CameraOffset | None:
    """The offset that fits all images best; None where too little is seen for any."""
    rotation, shift_m = np.eye(3), np.zeros(3)
    gate = FIRST_GATE
    system: tuple[Floats, list[Floats]] | None = None
    for _ in range(ROUNDS):
        normal, gradients, typical, count = _normal_equations(images, rotation, shift_m, gate)
        if count < LEAST_POINTS:
            return None
        # The prior pulls towards what the log says, not towards the last round.
        about = np.concatenate([_rotation_vector(rotation), shift_m])
        prior = (typical / np.array([UNKNOWN_RAD] * 3 + [UNKNOWN_M] * 3)) ** 2
        step = np.linalg.solve(normal + np.diag(prior), -np.sum(gradients, axis=0) - prior * about)
        rotation = _rotation(step[:3]) @ rotation
        shift_m = shift_m + step[3:]
        gate = min(FIRST_GATE, max(NOISES * typical, CLOSEST))
        system = normal + np.diag(prior), gradients
    assert system is not None
    return replace(_told(rotation, shift_m, *system, len(images)), biases=_biases(images, rotation, shift_m))


def _biases(images: Sequence[Surfaces], rotation: Floats, shift_m: Floats) -> tuple[DepthBias, ...]:
    measured_m, errors_m = [], []
    for image in images:
        turned = image.points @ rotation.T
        off_m = np.einsum("ij,ij->i", image.normals, turned + image.levelled @ shift_m) - image.offsets
        # How fast a point comes nearer its plane along the ray, per metre of depth.
        facing = np.einsum("ij,ij->i", image.normals, turned) / image.points[:, 2]
        good = np.abs(facing) > LEAST_FACING
        measured_m.append(image.points[good, 2])
        errors_m.append(off_m[good] / facing[good])
    depth_m, error_m = np.concatenate(measured_m), np.concatenate(errors_m)
    depth_m = depth_m - error_m
    near = np.abs(error_m) < FIRST_GATE * depth_m
    found = []
    for low_m in np.arange(0.0, FARTHEST_M, DISTANCE_M):
        here = near & (depth_m >= low_m) & (depth_m < low_m + DISTANCE_M)
        if here.sum() >= LEAST_POINTS:
            bias_mm = 1000 * float(np.median(error_m[here]))
            found.append(DepthBias(float(np.median(depth_m[here])), bias_mm, int(here.sum())))
    return tuple(found)


def _normal_equations(
    images: Sequence[Surfaces], rotation: Floats, shift_m: Floats, gate: float
) -> tuple[Floats, list[Floats], float, int]:
    """Normal matrix (6, 6), each image's gradient (6,), the typical distance in units of depth, how many points."""
    normal, gradients, sizes, count = np.zeros((6, 6)), [], [], 0
    for image in images:
        turned = image.points @ rotation.T
        depth_m = image.points[:, 2]
        # In units of depth: an angle moves what is far away more, and sensors are worse there.
        off = (np.einsum("ij,ij->i", image.normals, turned + image.levelled @ shift_m) - image.offsets) / depth_m
        near = np.abs(off) < gate
        jacobian = np.concatenate(
            [np.cross(turned, image.normals), image.normals @ image.levelled], axis=1
        )[near] / depth_m[near, None]  # fmt: skip
        normal += jacobian.T @ jacobian
        gradients.append(np.asarray(jacobian.T @ off[near]))
        sizes.append(np.abs(off[near]))
        count += int(near.sum())
    typical = 1.4826 * float(np.median(np.concatenate(sizes))) if count else math.inf
    return normal, gradients, max(typical, CLOSEST / NOISES), count


def _told(rotation: Floats, shift_m: Floats, normal: Floats, gradients: list[Floats], images: int) -> CameraOffset:
    right, forward = rotation[:, 0], rotation[:, 2]
    angles_deg = (
        math.degrees(math.atan2(-forward[1], forward[2])),
        math.degrees(math.atan2(-forward[0], forward[2])),
        math.degrees(math.atan2(right[1], right[0])),
    )
    inverse = np.linalg.inv(normal)
    # Errors of one image's pixels go together (one pose, one surface), so images are what is counted.
    spread = np.sqrt(np.diag(inverse @ sum(np.outer(g, g) for g in gradients) @ inverse))
    believed = np.sqrt(np.diag(inverse)) * CLOSEST
    errors = np.maximum(spread, believed)
    # About the optical axes x (right), y (down) and z (forward) turn tilt, pan and roll.
    # Adding 0.0 takes the minus off zero.
    tilt, pan, roll = (
        Estimate(value + 0.0, math.degrees(error)) if error < SURE_RAD else None
        for value, error in zip(angles_deg, errors.tolist()[:3], strict=True)
    )
    ahead, aside, above = (
        Estimate(1000 * value + 0.0, 1000 * error) if error < SURE_M else None
        for value, error in zip(shift_m.tolist(), errors.tolist()[3:], strict=True)
    )
    return CameraOffset(tilt, pan, roll, ahead, aside, above, images)


def _rotation(vector: Floats) -> Floats:
    """Rodrigues' formula."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-15:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross)


def _rotation_vector(rotation: Floats) -> Floats:
    """The inverse of :func:`_rotation` for less than half a turn."""
    axis = np.array([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]])
    angle = math.acos(min(1.0, max(-1.0, (float(np.trace(rotation)) - 1) / 2)))
    return axis / 2 if angle < 1e-9 else axis * angle / (2 * math.sin(angle))
