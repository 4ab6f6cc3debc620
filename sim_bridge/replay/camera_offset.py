"""Estimate of the camera's true pose relative to the logged one, from recorded and simulated depth.

A wrong tilt makes depth wrong in every image in the same way. So one rotation and one translation are fitted to all
images of an episode, by point-to-plane least squares (Chen and Medioni 1992): each recorded point against the
simulated surface at its pixel. On a plane that surface is the right one even if the pixel is not; points near edges
are left out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import optical_axes
from robot_runtime.hal import Intrinsics, Lens

Floats = NDArray[np.float64]

POINTS = 3000
"""Points per image, on a regular grid."""

REACH = 1 / 32
"""Distance to the neighbors that a surface normal is computed from, in units of the image's width."""

CURVED = 0.003
"""Curvature, in units of depth, above which a pixel lies on an edge or a round surface.

Simulated depth has no noise, but a resolution of millimeters.
"""

FARTHEST_M = 6.0
FIRST_GATE, NOISES, CLOSEST = 0.15, 3.0, 0.001
"""First gate in units of depth, its multiple of the typical distance in later rounds, and its lower bound."""

ROUNDS = 12
LEAST_POINTS = 500

DISTANCE_M = 0.5
"""Width of the distance bins of the depth bias."""

LEAST_FACING = 0.2
"""Least cosine between a ray and a surface normal; on more oblique surfaces the error of depth is one of angles."""

UNKNOWN_RAD, UNKNOWN_M = math.radians(30), 1.0
"""Standard deviations of the prior, wide enough for any real offset; they keep the system solvable."""

SURE_RAD, SURE_M = math.radians(0.5), 0.03
"""Standard errors above which a component is not reported."""


@dataclass(frozen=True)
class Estimate:
    """A value and its standard error over images, not over their pixels."""

    value: float
    error: float


@dataclass(frozen=True)
class DepthBias:
    """Depth error near one distance that the camera's offset does not explain."""

    depth_m: float
    bias_mm: float
    points: int


@dataclass(frozen=True)
class CameraOffset:
    """Pose of the true camera in the frame of the logged one; None where the images do not determine a component.

    A constant error of the referee shows here, too: in pan, forward and left. ``*_mm`` is along the robot's axes.

    Attributes:
        tilt_deg: tilt, up positive.
        pan_deg: pan, left positive.
        roll_deg: roll, right positive.
        images: number of images used.
        biases: biases of depth, near to far, that no offset explains. A camera that measures too far and one that is
            farther back look much alike, so offset and biases belong together.
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
    """Recorded points of an image and the simulated planes at their pixels, in the optical frame.

    Attributes:
        points: float64 (N, 3).
        normals: float64 (N, 3), unit length.
        offsets: float64 (N,), distance of the planes from the origin along their normals.
        leveled: float64 (3, 3), rotation from the robot's axes to the optical frame.
    """

    points: Floats
    normals: Floats
    offsets: Floats
    leveled: Floats


def surfaces(
    recorded_m: NDArray[np.float32],
    simulated_m: NDArray[np.float32],
    pinhole: Intrinsics,
    pan_rad: float,
    tilt_rad: float,
) -> Surfaces:
    """The points of an image that lie on smooth surfaces.

    Args:
        recorded_m: depth, float32 (H, W), 0 where nothing is seen.
        simulated_m: simulated depth, float32 (H, W), 0 where nothing is seen.
        pinhole: camera model.
        pan_rad: head pan.
        tilt_rad: head tilt.
    """
    stride, reach = max(1, round(math.sqrt(simulated_m.size / POINTS))), max(1, round(REACH * pinhole.width))
    grid = np.mgrid[reach : pinhole.height - reach : stride, reach : pinhole.width - reach : stride]
    rows, columns = grid.reshape(2, -1)
    lens = Lens.of(pinhole)

    def seen(down: int, right: int) -> tuple[Floats, Floats]:
        depth_m = simulated_m[rows + down, columns + right].astype(np.float64)
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
    """The offset that fits all images best; None with too few points."""
    rotation, shift_m = np.eye(3), np.zeros(3)
    gate = FIRST_GATE
    system: tuple[Floats, list[Floats]] | None = None
    for _ in range(ROUNDS):
        normal, gradients, typical, count = _normal_equations(images, rotation, shift_m, gate)
        if count < LEAST_POINTS:
            return None
        # The prior is about the logged pose, not about the last round's.
        about = np.concatenate([_rotation_vector(rotation), shift_m])
        prior = (typical / np.array([UNKNOWN_RAD] * 3 + [UNKNOWN_M] * 3)) ** 2
        step = np.linalg.solve(normal + np.diag(prior), -np.sum(gradients, axis=0) - prior * about)
        rotation = _rotation(step[:3]) @ rotation
        shift_m = shift_m + step[3:]
        gate = min(FIRST_GATE, max(NOISES * typical, CLOSEST))
        system = normal + np.diag(prior), gradients
    assert system is not None
    return replace(_offset(rotation, shift_m, *system, len(images)), biases=_biases(images, rotation, shift_m))


def _biases(images: Sequence[Surfaces], rotation: Floats, shift_m: Floats) -> tuple[DepthBias, ...]:
    measured_m, errors_m = [], []
    for image in images:
        turned = image.points @ rotation.T
        off_m = np.einsum("ij,ij->i", image.normals, turned + image.leveled @ shift_m) - image.offsets
        # Change of the distance to the plane per meter of depth.
        facing = np.einsum("ij,ij->i", image.normals, turned) / image.points[:, 2]
        good = np.abs(facing) > LEAST_FACING
        measured_m.append(image.points[good, 2])
        errors_m.append(off_m[good] / facing[good])
    depth_m, error_m = np.concatenate(measured_m), np.concatenate(errors_m)
    depth_m = depth_m - error_m
    near = np.abs(error_m) < FIRST_GATE * depth_m
    biases = []
    for low_m in np.arange(0.0, FARTHEST_M, DISTANCE_M):
        here = near & (depth_m >= low_m) & (depth_m < low_m + DISTANCE_M)
        if here.sum() >= LEAST_POINTS:
            bias_mm = 1000 * float(np.median(error_m[here]))
            biases.append(DepthBias(float(np.median(depth_m[here])), bias_mm, int(here.sum())))
    return tuple(biases)


def _normal_equations(
    images: Sequence[Surfaces], rotation: Floats, shift_m: Floats, gate: float
) -> tuple[Floats, list[Floats], float, int]:
    """Normal matrix (6, 6), each image's gradient (6,), the typical distance in units of depth, number of points."""
    normal, gradients, sizes, count = np.zeros((6, 6)), [], [], 0
    for image in images:
        turned = image.points @ rotation.T
        depth_m = image.points[:, 2]
        # In units of depth, because errors of angles and of sensors grow with it.
        off = (np.einsum("ij,ij->i", image.normals, turned + image.leveled @ shift_m) - image.offsets) / depth_m
        near = np.abs(off) < gate
        jacobian = np.concatenate(
            [np.cross(turned, image.normals), image.normals @ image.leveled], axis=1
        )[near] / depth_m[near, None]  # fmt: skip
        normal += jacobian.T @ jacobian
        gradients.append(np.asarray(jacobian.T @ off[near]))
        sizes.append(np.abs(off[near]))
        count += int(near.sum())
    typical = 1.4826 * float(np.median(np.concatenate(sizes))) if count else math.inf
    return normal, gradients, max(typical, CLOSEST / NOISES), count


def _offset(rotation: Floats, shift_m: Floats, normal: Floats, gradients: list[Floats], images: int) -> CameraOffset:
    right, forward = rotation[:, 0], rotation[:, 2]
    angles_deg = (
        math.degrees(math.atan2(-forward[1], forward[2])),
        math.degrees(math.atan2(-forward[0], forward[2])),
        math.degrees(math.atan2(right[1], right[0])),
    )
    inverse = np.linalg.inv(normal)
    # Errors within an image are correlated (one pose, one surface), so images are the sampling unit.
    spread = np.sqrt(np.diag(inverse @ sum(np.outer(g, g) for g in gradients) @ inverse))
    least = np.sqrt(np.diag(inverse)) * CLOSEST
    errors = np.maximum(spread, least)
    # Tilt, pan and roll rotate about the optical axes x (right), y (down), z (forward). Adding 0.0 turns -0.0 to 0.0.
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
