"""Where tags hang, from many images of them: bundle adjustment.

Everything is unknown at once: each tag's pose, and the robot's at each image. What holds them together are the corners
in the images, that the robot stands on a floor, and its odometry from one image to the next. What ties them to ``map``
is tags that were surveyed otherwise: one with its whole pose, or the places of several; without any, it is the poses
that the log has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, diags, lil_matrix
from scipy.sparse.linalg import spsolve
from scipy.spatial.transform import Rotation

from drivers.apriltag.pose import CameraOnRobot, Sighting, Stance, Vector, camera_from_tag, solve
from robot_runtime.camera_mount import Matrix, rotation_rpy, transform
from robot_runtime.errors import CalibrationFailed
from robot_runtime.geometry import SE2, wrap_angle
from robot_runtime.tag_map import Tag, unit_corners

CORNER_SD_PX = 0.15
SURVEYED_SD_M, SURVEYED_SD_RAD = 0.002, math.radians(0.2)
LOGGED_SD_M, LOGGED_SD_RAD = 0.05, math.radians(2.0)
ODOMETRY_SD = (0.005, 0.02)
"""Metres, and metres per metre of the way."""
TURN_SD = (math.radians(0.5), 0.02)
OUTLIER_SD = 3.0
"""Beyond so many standard deviations, a residual counts by its size, not by its square."""

HELD_OUT_EVERY = 5
WORST_PX = 1.0
"""Root mean square of a tag's corners beyond which something is wrong with it."""
FEWEST_LOOKS = 3

MAX_STEPS = 60
MAX_DAMPING = 1e8
CONVERGED = 1e-6
STEP = 1e-6
"""Metres and radians, for differences."""


@dataclass(frozen=True, eq=False)
class Look:
    """One image of some tags.

    Attributes:
        pose: where the robot is thought to be, in ``map``. odom: by its wheels; None if nobody knows.
        run: images of one run follow each other without anybody having carried the robot.
        base_from_camera: float64 (4, 4), the optical frame in base_link.
        rays: per id float64 (4, 2), the corners as x / z and y / z.
        focal_px: pixels per unit of those.
    """

    pose: SE2
    odom: SE2 | None
    run: int
    base_from_camera: Matrix
    rays: Mapping[int, Vector]
    focal_px: float


@dataclass(frozen=True)
class Survey:
    """What came out.

    Attributes:
        tags: in ``map``, by id, with how many images saw each and the root mean square of its corners.
        rms_px: of all corners. held_out_rms_px: of those of images that took no part, from a pose of their own; None
            where there were too few.
        looks, held_out: how many images.
        way_ratio: the way between images as it came out, over odometry's; None without odometry.
    """

    tags: tuple[Tag, ...]
    rms_px: float
    held_out_rms_px: float | None
    looks: int
    held_out: int
    way_ratio: float | None

    @property
    def doubtful(self) -> tuple[Tag, ...]:
        """Tags that fit badly, the worst first: moved meanwhile, bent, or not as large as was said."""
        bad = [tag for tag in self.tags if tag.rms_px is not None and tag.rms_px > WORST_PX]
        return tuple(sorted(bad, key=lambda tag: tag.rms_px or 0.0, reverse=True))


def survey(looks: Sequence[Look], sizes_m: Mapping[int, float], surveyed: Mapping[int, Tag], stance: Stance) -> Survey:
    """The tags' poses.

    Args:
        sizes_m: per id the edge of its black square; tags without one are left out.
        surveyed: tags whose pose (one) or places (several) in ``map`` are known; empty: the looks' own poses are.

    Raises:
        CalibrationFailed: too few images, a tag that was surveyed and is in no image, or no solution.
    """
    seen = [look for look in looks if any(tag_id in sizes_m for tag_id in look.rays)]
    held_out = seen[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY] if len(seen) >= 2 * HELD_OUT_EVERY else []
    used = [look for look in seen if look not in held_out]
    if len(used) < FEWEST_LOOKS:
        raise CalibrationFailed(
            f"a survey needs {FEWEST_LOOKS} images with tags, there are {len(used)} of {len(looks)}",
            "drive through the rooms again, slowly, 1 to 3 m from the walls, and give all logs",
        )
    problem = _Problem(used, sizes_m, surveyed, stance)
    x = _minimised(problem)
    tags, bases = problem.result(x)
    _, rms_px = problem.corner_errors(x)
    return Survey(tags, rms_px, _verified(held_out, tags, stance), len(used), len(held_out), _way_ratio(used, bases))


def _minimised(problem: _Problem) -> Vector:
    """The unknowns that explain everything best: Levenberg and Marquardt's method, reweighted so that outliers count by
    their size alone. Raises ``CalibrationFailed`` if it comes to no end."""
    x: Vector = np.zeros(problem.unknowns)
    damping = 1e-4
    residuals = problem.residuals(x)
    for _ in range(MAX_STEPS):
        weights = 1 / np.sqrt(1 + np.square(residuals / OUTLIER_SD))
        slopes = problem.slopes(x, residuals)
        weighted = slopes.multiply(weights[:, None]).tocsr()
        normal, downhill = (slopes.T @ weighted).tocsc(), -(weighted.T @ residuals)
        while damping < MAX_DAMPING:
            step = spsolve(normal + damping * diags(normal.diagonal()), downhill)
            tried = problem.residuals(x + step)
            if _cost(tried) <= _cost(residuals):
                break
            damping *= 10
        else:
            return x  # nothing is better anywhere near
        gained = 1 - _cost(tried) / _cost(residuals)
        x, residuals, damping = np.asarray(x + step), tried, damping / 10
        if gained < CONVERGED:
            return x
    raise CalibrationFailed(
        f"the survey came to no end in {MAX_STEPS} steps", "check the logged poses and the tags' sizes"
    )


def _cost(residuals: Vector) -> float:
    return float((np.sqrt(1 + np.square(residuals / OUTLIER_SD)) - 1).sum())


class _Problem:
    """The unknowns are small displacements from a first guess: of every tag and of every base, three metres along the
    axes of ``map`` and three radians about its own."""

    def __init__(
        self, looks: Sequence[Look], sizes_m: Mapping[int, float], surveyed: Mapping[int, Tag], stance: Stance
    ) -> None:
        self._looks, self._stance = looks, stance
        self._bases = np.stack([_on_floor(look.pose) for look in looks])
        counts: dict[int, int] = {}
        for look in looks:
            for tag_id in look.rays:
                if tag_id in sizes_m:
                    counts[tag_id] = counts.get(tag_id, 0) + 1
        self._ids = sorted(counts)
        self._counts = counts
        for tag_id in surveyed:
            if tag_id not in counts:
                raise CalibrationFailed(
                    f"tag {tag_id} was surveyed, and no image shows it", "drive past it, or name one that was seen"
                )
        self._sizes = np.array([sizes_m[tag_id] for tag_id in self._ids])
        self._surveyed = {self._ids.index(tag_id): tag for tag_id, tag in surveyed.items()}
        self._tags = np.stack([self._first_guess(tag_id, sizes_m[tag_id], surveyed) for tag_id in self._ids])
        pairs = [(i, self._ids.index(t)) for i, look in enumerate(looks) for t in look.rays if t in sizes_m]
        self._look_of, self._tag_of = (np.array(column) for column in zip(*pairs, strict=True))
        self._rays = np.stack([looks[i].rays[self._ids[t]] for i, t in pairs])
        self._focal_px = np.array([looks[i].focal_px for i, _ in pairs])
        self._cameras = np.stack([looks[i].base_from_camera for i, _ in pairs])
        self._corners = unit_corners() * self._sizes[self._tag_of, None, None]
        steps = [i for i in range(1, len(looks)) if looks[i].run == looks[i - 1].run]
        self._steps = [i for i in steps if looks[i].odom is not None and looks[i - 1].odom is not None]
        axis = np.arange(6)
        tag_groups, base_groups = [axis] * len(self._ids), [6 + 6 * (i % 2) + axis for i in range(len(looks))]
        self._groups = np.concatenate([*tag_groups, *base_groups])
        self._pattern = self._sparsity()

    @property
    def unknowns(self) -> int:
        return 6 * (len(self._ids) + len(self._looks))

    def residuals(self, x: Vector) -> Vector:
        """Everything measured minus expected, in standard deviations."""
        tags, bases = self._poses(x)
        up = bases[:, 2, :3]
        tilt_sd_rad = math.radians(self._stance.tilt_sd_deg)
        stands = np.column_stack(
            [up[:, 0] / tilt_sd_rad, up[:, 1] / tilt_sd_rad, bases[:, 2, 3] / self._stance.height_sd_m]
        )
        parts = [self._errors_px(tags, bases).ravel() / CORNER_SD_PX, stands.ravel()]
        parts += [self._driven(bases, i) for i in self._steps]
        parts += self._tied(tags, bases)
        return np.concatenate(parts)

    def slopes(self, x: Vector, residuals: Vector) -> csr_matrix:
        """How the residuals at ``x`` change with each unknown, by differences: those of all tags at once, then those of
        every other base, because no residual depends on two unknowns that are changed together."""
        changes = []
        for group in range(18):
            moved = x + STEP * (self._groups == group)
            changes.append((self.residuals(moved) - residuals) / STEP)
        rows, columns = self._pattern.row, self._pattern.col
        values = np.stack(changes)[self._groups[columns], rows]
        return csr_matrix((values, (rows, columns)), shape=self._pattern.shape)

    def _sparsity(self) -> coo_matrix:
        """Which residual depends on which unknown."""
        first_base, n_looks = 6 * len(self._ids), len(self._looks)
        blocks: list[tuple[int, list[int]]] = []
        for tag, look in zip(self._tag_of.tolist(), self._look_of.tolist(), strict=True):
            blocks.append((8, [6 * tag, first_base + 6 * look]))
        blocks += [(3, [first_base + 6 * look]) for look in range(n_looks)]
        blocks += [(3, [first_base + 6 * i, first_base + 6 * (i - 1)]) for i in self._steps]
        if self._surveyed:
            blocks += [(6 if len(self._surveyed) == 1 else 3, [6 * tag]) for tag in self._surveyed]
        else:
            blocks += [(3, [first_base + 6 * look]) for look in range(n_looks)]
        matrix = lil_matrix((sum(rows for rows, _ in blocks), self.unknowns), dtype=np.int8)
        row = 0
        for rows, columns in blocks:
            for column in columns:
                matrix[row : row + rows, column : column + 6] = 1
            row += rows
        return matrix.tocoo()

    def corner_errors(self, x: Vector) -> tuple[list[float], float]:
        """Root mean squares in pixels: per tag, and of all."""
        squares = np.square(self._errors_px(*self._poses(x))).sum(axis=-1)
        per_tag = [math.sqrt(squares[self._tag_of == tag].mean()) for tag in range(len(self._ids))]
        return per_tag, math.sqrt(squares.mean())

    def result(self, x: Vector) -> tuple[tuple[Tag, ...], Vector]:
        """The tags, and the bases (N, 4, 4)."""
        tags, bases = self._poses(x)
        per_tag, _ = self.corner_errors(x)
        found = []
        for number, (tag_id, matrix) in enumerate(zip(self._ids, tags, strict=True)):
            xyz = tuple(round(float(value), 5) for value in matrix[:3, 3])
            rpy = Rotation.from_matrix(matrix[:3, :3]).as_euler("xyz", degrees=True)
            rpy_deg = tuple(round(float(value), 3) + 0.0 for value in rpy)
            tag = Tag(tag_id, float(self._sizes[number]), xyz, rpy_deg)  # type: ignore[arg-type]
            found.append(replace(tag, looks=self._counts[tag_id], rms_px=round(per_tag[number], 3)))
        return tuple(found), bases

    def _poses(self, x: Vector) -> tuple[Vector, Vector]:
        moves = x.reshape(-1, 6)
        middle = len(self._ids)
        return _displaced(self._tags, moves[:middle]), _displaced(self._bases, moves[middle:])

    def _errors_px(self, tags: Vector, bases: Vector) -> Vector:
        """(observations, 4 corners, 2)."""
        tag, base, camera = tags[self._tag_of], bases[self._look_of], self._cameras
        in_map = np.einsum("nij,nkj->nki", tag[:, :3, :3], self._corners) + tag[:, None, :3, 3]
        in_base = np.einsum("nji,nkj->nki", base[:, :3, :3], in_map - base[:, None, :3, 3])
        seen = np.einsum("nji,nkj->nki", camera[:, :3, :3], in_base - camera[:, None, :3, 3])
        ideal = seen[..., :2] / np.maximum(seen[..., 2:], 1e-3)
        return np.asarray((ideal - self._rays) * self._focal_px[:, None, None])

    def _driven(self, bases: Vector, i: int) -> Vector:
        """How the way from one image to the next differs from odometry's."""
        before, after = self._looks[i - 1].odom, self._looks[i].odom
        assert before is not None
        assert after is not None
        driven = after.relative_to(before)
        found = _planar(bases[i]).relative_to(_planar(bases[i - 1]))
        way_m, turn_rad = math.hypot(driven.x_m, driven.y_m), abs(driven.yaw_rad)
        sd_m, sd_rad = ODOMETRY_SD[0] + ODOMETRY_SD[1] * way_m, TURN_SD[0] + TURN_SD[1] * turn_rad
        off_rad = wrap_angle(found.yaw_rad - driven.yaw_rad)
        return np.array([(found.x_m - driven.x_m) / sd_m, (found.y_m - driven.y_m) / sd_m, off_rad / sd_rad])

    def _tied(self, tags: Vector, bases: Vector) -> list[Vector]:
        """How what is known in ``map`` differs."""
        if not self._surveyed:
            tied = []
            for look, base in zip(self._looks, bases, strict=True):
                pose = _planar(base)
                off_m = np.array([pose.x_m - look.pose.x_m, pose.y_m - look.pose.y_m]) / LOGGED_SD_M
                tied.append(np.append(off_m, wrap_angle(pose.yaw_rad - look.pose.yaw_rad) / LOGGED_SD_RAD))
            return tied
        tied = [(tags[n][:3, 3] - tag.xyz_m) / SURVEYED_SD_M for n, tag in self._surveyed.items()]
        if len(self._surveyed) == 1:
            ((number, tag),) = self._surveyed.items()
            turned = Rotation.from_matrix(tag.matrix[:3, :3].T @ tags[number][:3, :3]).as_rotvec()
            tied = [np.concatenate([tied[0], turned / SURVEYED_SD_RAD])]
        return tied

    def _first_guess(self, tag_id: int, size_m: float, surveyed: Mapping[int, Tag]) -> Matrix:
        """The pose by one image that explains the other images best, given where the robot was thought to be."""
        views = [(i, look) for i, look in enumerate(self._looks) if tag_id in look.rays]
        nearest = sorted(views, key=lambda view: -float(np.ptp(view[1].rays[tag_id], axis=0).max()))[:FEWEST_LOOKS]
        guesses: list[Matrix] = []
        for i, look in nearest:
            tag = Tag(tag_id, size_m, (0.0, 0.0, 0.0))
            seen = camera_from_tag(Sighting(tag, look.rays[tag_id], 1.0))
            guesses.extend(self._bases[i] @ look.base_from_camera @ matrix for matrix in seen)
        if not guesses:
            raise CalibrationFailed(f"tag {tag_id} is seen so that it has no pose", "take images from nearer")
        if tag_id in surveyed and len(surveyed) == 1:
            guesses = [surveyed[tag_id].matrix]
        corners = unit_corners() * size_m

        def misfit(pose: Matrix) -> float:
            errors = []
            for i, look in views:
                camera = self._bases[i] @ look.base_from_camera
                seen = (corners @ pose[:3, :3].T + pose[:3, 3] - camera[:3, 3]) @ camera[:3, :3]
                errors.append(float(np.abs(seen[:, :2] / np.maximum(seen[:, 2:], 1e-3) - look.rays[tag_id]).mean()))
            return float(np.median(errors))

        return min(guesses, key=misfit)


def _verified(held_out: Sequence[Look], tags: Sequence[Tag], stance: Stance) -> float | None:
    """Root mean square of the corners of images that took no part, in pixels."""
    by_id = {tag.id: tag for tag in tags}
    squares: list[float] = []
    for look in held_out:
        sd = CORNER_SD_PX / look.focal_px
        sightings = [Sighting(by_id[tag_id], rays, sd) for tag_id, rays in look.rays.items() if tag_id in by_id]
        solutions = solve(sightings, CameraOnRobot(look.base_from_camera), stance)
        # A pose of its own always fits a single tag: that would verify nothing.
        if len(sightings) > 1:
            fits = solutions[0].fits if solutions else [math.inf] * len(sightings)
            squares.extend(fit / 4 * CORNER_SD_PX**2 for fit in fits)
    return math.sqrt(float(np.mean(squares))) if squares else None


def _way_ratio(looks: Sequence[Look], bases: Vector) -> float | None:
    driven_m = found_m = 0.0
    for i in range(1, len(looks)):
        before, after = looks[i - 1].odom, looks[i].odom
        if looks[i].run == looks[i - 1].run and before is not None and after is not None:
            driven_m += before.distance_to(after)
            found_m += float(np.linalg.norm(bases[i][:2, 3] - bases[i - 1][:2, 3]))
    return found_m / driven_m if driven_m > 0 else None


def _displaced(poses: Vector, moves: Vector) -> Vector:
    displaced = np.array(poses)
    displaced[:, :3, 3] += moves[:, :3]
    displaced[:, :3, :3] = poses[:, :3, :3] @ Rotation.from_rotvec(moves[:, 3:]).as_matrix()
    return displaced


def _on_floor(pose: SE2) -> Matrix:
    return transform((pose.x_m, pose.y_m, 0.0), rotation_rpy(0.0, 0.0, pose.yaw_rad))


def _planar(base: Matrix) -> SE2:
    return SE2(float(base[0, 3]), float(base[1, 3]), math.atan2(base[1, 0], base[0, 0]))
