"""Bundle adjustment of tags and robot poses by images, the floor, odometry and surveyed tags.

The solver is Levenberg and Marquardt's method on sparse normal equations with a soft-l1 loss. scipy's
``least_squares(jac_sparsity=..., loss="soft_l1")`` was measured on the survey tests and on 100 and 300 images: its
sparse solver (lsmr) takes 5 to 17 times as long (2.4 to 11 s against 0.2 to 0.6 s; 32 s against 7 s for 300 images) and
stops after 200 evaluations with larger errors (10.6 mm against 4.2 mm for 300 images); its dense solver has equal
errors in twice the time, and nine times for 100 images. The residuals agree to 0.0001 pixels in all cases.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares
from scipy.sparse import coo_matrix, csr_matrix, diags, lil_matrix
from scipy.sparse.linalg import spsolve
from scipy.spatial.transform import Rotation

from drivers.apriltag.pose import FloorPrior, Vector
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.transforms import Matrix, rotation_rpy, transform
from robot_runtime.errors import CalibrationFailed
from robot_runtime.scenes.tag_map import Tag, poses_of_square, unit_corners

CORNER_SD_PX = 0.15
SURVEYED_SD_M, SURVEYED_SD_RAD = 0.002, math.radians(0.2)
LOGGED_SD_M, LOGGED_SD_RAD = 0.05, math.radians(2.0)
ODOMETRY_SD = (0.005, 0.02)
"""Standard deviation of odometry between two images: constant, m, and share of the distance."""
TURN_SD = (math.radians(0.5), 0.02)
"""The same of its turns: constant, rad, and share of the angle."""
OUTLIER_SD = 3.0
"""Standard deviations beyond which a residual's cost grows linearly."""

TURNED_RAD = math.radians(5.0)
"""Rotation of a tag beyond which its new pose is another solution, not a refinement."""
MIN_VIEWS = 3

MAX_STEPS = 60
MAX_DAMPING = 1e8
CONVERGED = 1e-6
STEP = 1e-6
"""Step of the difference quotients, meters and radians."""


@dataclass(frozen=True, eq=False)
class TagView:
    """Tags seen in one image.

    Attributes:
        pose: first guess of the robot's pose in ``map``.
        odom: its pose by odometry; None if unknown.
        run: number of the run. Odometry relates consecutive images of the same run only.
        base_from_camera: float64 (4, 4), the optical frame in base_link.
        rays: corners as x / z and y / z by id, float64 (4, 2).
        focal_px: pixels per unit of the rays.
    """

    pose: SE2
    odom: SE2 | None
    run: int
    base_from_camera: Matrix
    rays: Mapping[int, Vector]
    focal_px: float


def _cost(residuals: Vector) -> float:
    return float((np.sqrt(1 + np.square(residuals / OUTLIER_SD)) - 1).sum())


class Problem:
    """Residuals of a survey.

    The unknowns are displacements of every tag and every base from a first guess: three translations along the axes of
    ``map`` (m), and a rotation vector about the body's own axes (rad).

    Tags without a size are left out; of surveyed tags the pose or several positions are known.

    Raises:
        CalibrationFailed: a surveyed tag is in no image, or a tag has no first guess.
    """

    def __init__(
        self, views: Sequence[TagView], sizes_m: Mapping[int, float], surveyed: Mapping[int, Tag], stance: FloorPrior
    ) -> None:
        self._views, self._stance = views, stance
        self._bases = np.stack([_on_floor(view.pose) for view in views])
        counts: dict[int, int] = {}
        for view in views:
            for tag_id in view.rays:
                if tag_id in sizes_m:
                    counts[tag_id] = counts.get(tag_id, 0) + 1
        self._ids = sorted(counts)
        self._counts = counts
        for tag_id in surveyed:
            if tag_id not in counts:
                raise CalibrationFailed(
                    f"tag {tag_id} is surveyed, but in no image", "drive past it, or survey one that is in the images"
                )
        self._sizes = np.array([sizes_m[tag_id] for tag_id in self._ids])
        self._surveyed = {self._ids.index(tag_id): tag for tag_id, tag in surveyed.items()}
        self._tags = np.stack([self._first_guess(tag_id, sizes_m[tag_id], surveyed) for tag_id in self._ids])
        pairs = [(i, self._ids.index(t)) for i, view in enumerate(views) for t in view.rays if t in sizes_m]
        self._view_of, self._tag_of = (np.array(column) for column in zip(*pairs, strict=True))
        self._rays = np.stack([views[i].rays[self._ids[t]] for i, t in pairs])
        self._focal_px = np.array([views[i].focal_px for i, _ in pairs])
        self._cameras = np.stack([views[i].base_from_camera for i, _ in pairs])
        self._corners = unit_corners() * self._sizes[self._tag_of, None, None]
        steps = [i for i in range(1, len(views)) if views[i].run == views[i - 1].run]
        self._steps = [i for i in steps if views[i].odom is not None and views[i - 1].odom is not None]
        axis = np.arange(6)
        tag_groups, base_groups = [axis] * len(self._ids), [6 + 6 * (i % 2) + axis for i in range(len(views))]
        self._groups = np.concatenate([*tag_groups, *base_groups])
        self._pattern = self._sparsity()

    @property
    def unknowns(self) -> int:
        return 6 * (len(self._ids) + len(self._views))

    def solve(self) -> Vector:
        """Return the unknowns of least cost. Raises ``CalibrationFailed`` if the iteration does not converge."""
        x: Vector = np.zeros(self.unknowns)
        damping = 1e-4
        residuals = self.residuals(x)
        for _ in range(MAX_STEPS):
            weights = 1 / np.sqrt(1 + np.square(residuals / OUTLIER_SD))
            jacobian = self.jacobian(x, residuals)
            weighted = jacobian.multiply(weights[:, None]).tocsr()
            normal, downhill = (jacobian.T @ weighted).tocsc(), -(weighted.T @ residuals)
            while damping < MAX_DAMPING:
                step = spsolve(normal + damping * diags(normal.diagonal()), downhill)
                candidate = self.residuals(x + step)
                if _cost(candidate) <= _cost(residuals):
                    break
                damping *= 10
            else:
                return x  # a minimum to machine precision
            gained = 1 - _cost(candidate) / _cost(residuals)
            x, residuals, damping = np.asarray(x + step), candidate, damping / 10
            if gained < CONVERGED:
                return x
        raise CalibrationFailed(
            f"the survey did not converge in {MAX_STEPS} steps", "check the logged poses and the tags' sizes"
        )

    def residuals(self, x: Vector) -> Vector:
        """Return all residuals in standard deviations."""
        tags, bases = self._poses(x)
        up = bases[:, 2, :3]
        tilt_sd_rad = math.radians(self._stance.tilt_sd_deg)
        stands = np.column_stack(
            [up[:, 0] / tilt_sd_rad, up[:, 1] / tilt_sd_rad, bases[:, 2, 3] / self._stance.height_sd_m]
        )
        parts = [self._errors_px(tags, bases).ravel() / CORNER_SD_PX, stands.ravel()]
        parts += [self._odometry_residuals(bases, i) for i in self._steps]
        parts += self._map_residuals(tags, bases)
        return np.concatenate(parts)

    def jacobian(self, x: Vector, residuals: Vector) -> csr_matrix:
        """Return the Jacobian by differences.

        Unknowns on which no common residual depends are displaced together: those of all tags, then those of every
        other base.
        """
        changes = []
        for group in range(18):
            moved = x + STEP * (self._groups == group)
            changes.append((self.residuals(moved) - residuals) / STEP)
        rows, columns = self._pattern.row, self._pattern.col
        values = np.stack(changes)[self._groups[columns], rows]
        return csr_matrix((values, (rows, columns)), shape=self._pattern.shape)

    def _sparsity(self) -> coo_matrix:
        """Return the pattern of residuals (rows) and unknowns (columns)."""
        first_base, n_views = 6 * len(self._ids), len(self._views)
        blocks: list[tuple[int, list[int]]] = []
        for tag, view in zip(self._tag_of.tolist(), self._view_of.tolist(), strict=True):
            blocks.append((8, [6 * tag, first_base + 6 * view]))
        blocks += [(3, [first_base + 6 * view]) for view in range(n_views)]
        blocks += [(3, [first_base + 6 * i, first_base + 6 * (i - 1)]) for i in self._steps]
        if self._surveyed:
            blocks += [(6 if len(self._surveyed) == 1 else 3, [6 * tag]) for tag in self._surveyed]
        else:
            blocks += [(3, [first_base + 6 * view]) for view in range(n_views)]
        matrix = lil_matrix((sum(rows for rows, _ in blocks), self.unknowns), dtype=np.int8)
        row = 0
        for rows, columns in blocks:
            for column in columns:
                matrix[row : row + rows, column : column + 6] = 1
            row += rows
        return matrix.tocoo()

    def corner_errors(self, x: Vector) -> tuple[list[float], float]:
        """Return the root mean squares of corner errors in pixels: per tag, and of all."""
        squares = np.square(self._errors_px(*self._poses(x))).sum(axis=-1)
        per_tag = [math.sqrt(squares[self._tag_of == tag].mean()) for tag in range(len(self._ids))]
        return per_tag, math.sqrt(squares.mean())

    def restart(self, x: Vector) -> bool:
        """Restart from the solved bases with the best pose of each tag to correct mirror solutions.

        Returns:
            Whether the pose of any tag changed to another solution.
        """
        solved, self._bases = self._poses(x)
        turned = False
        for number, tag_id in enumerate(self._ids):
            if self._surveyed and len(self._surveyed) == 1 and number in self._surveyed:
                continue
            before = solved[number]
            candidates = [before, *self._guesses(tag_id, float(self._sizes[number]))]
            fitted = [self._fitted(tag_id, candidate) for candidate in candidates]
            best = min(fitted, key=lambda fit: fit[0])[1]
            angle_rad = Rotation.from_matrix(before[:3, :3].T @ best[:3, :3]).magnitude()
            turned = turned or angle_rad > TURNED_RAD
            solved[number] = best
        self._tags = solved
        return turned

    def _fitted(self, tag_id: int, pose: Matrix) -> tuple[float, Matrix]:
        """Return cost and pose of a tag that fits its images best near ``pose``, with all bases fixed."""
        views = [(self._bases[i] @ view.base_from_camera, view) for i, view in enumerate(self._views)]
        views = [(camera, view) for camera, view in views if tag_id in view.rays]
        cameras = np.stack([camera for camera, _ in views])
        rays = np.stack([view.rays[tag_id] for _, view in views])
        corners = unit_corners() * self._sizes[self._ids.index(tag_id)]

        def errors(move: Vector) -> Vector:
            (moved,) = _displaced(pose[None], move[None])
            in_map = corners @ moved[:3, :3].T + moved[:3, 3]
            seen = np.einsum("nji,nkj->nki", cameras[:, :3, :3], in_map - cameras[:, None, :3, 3])
            ideal = seen[..., :2] / np.maximum(seen[..., 2:], 1e-3)
            return np.asarray((ideal - rays).ravel() * views[0][1].focal_px / CORNER_SD_PX)

        solved = least_squares(errors, np.zeros(6), loss="soft_l1", f_scale=OUTLIER_SD, max_nfev=30)
        (moved,) = _displaced(pose[None], solved.x[None])
        return float(solved.cost), moved

    def result(self, x: Vector) -> tuple[tuple[Tag, ...], Vector]:
        """Return the tags, and the bases, float64 (N, 4, 4)."""
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
        """Return the corner errors in pixels, (observations, 4 corners, 2)."""
        tag, base, camera = tags[self._tag_of], bases[self._view_of], self._cameras
        in_map = np.einsum("nij,nkj->nki", tag[:, :3, :3], self._corners) + tag[:, None, :3, 3]
        in_base = np.einsum("nji,nkj->nki", base[:, :3, :3], in_map - base[:, None, :3, 3])
        seen = np.einsum("nji,nkj->nki", camera[:, :3, :3], in_base - camera[:, None, :3, 3])
        ideal = seen[..., :2] / np.maximum(seen[..., 2:], 1e-3)
        return np.asarray((ideal - self._rays) * self._focal_px[:, None, None])

    def _odometry_residuals(self, bases: Vector, i: int) -> Vector:
        """Return the residuals of the displacement between two images by odometry."""
        before, after = self._views[i - 1].odom, self._views[i].odom
        assert before is not None
        assert after is not None
        driven = after.relative_to(before)
        found = _planar(bases[i]).relative_to(_planar(bases[i - 1]))
        distance_m, turn_rad = math.hypot(driven.x_m, driven.y_m), abs(driven.yaw_rad)
        sd_m, sd_rad = ODOMETRY_SD[0] + ODOMETRY_SD[1] * distance_m, TURN_SD[0] + TURN_SD[1] * turn_rad
        off_rad = wrap_angle(found.yaw_rad - driven.yaw_rad)
        return np.array([(found.x_m - driven.x_m) / sd_m, (found.y_m - driven.y_m) / sd_m, off_rad / sd_rad])

    def _map_residuals(self, tags: Vector, bases: Vector) -> list[Vector]:
        """Return the residuals of surveyed tags, or of the logged poses without any."""
        if not self._surveyed:
            tied = []
            for view, base in zip(self._views, bases, strict=True):
                pose = _planar(base)
                off_m = np.array([pose.x_m - view.pose.x_m, pose.y_m - view.pose.y_m]) / LOGGED_SD_M
                tied.append(np.append(off_m, wrap_angle(pose.yaw_rad - view.pose.yaw_rad) / LOGGED_SD_RAD))
            return tied
        tied = [(tags[n][:3, 3] - tag.xyz_m) / SURVEYED_SD_M for n, tag in self._surveyed.items()]
        if len(self._surveyed) == 1:
            ((number, tag),) = self._surveyed.items()
            turned = Rotation.from_matrix(tag.matrix[:3, :3].T @ tags[number][:3, :3]).as_rotvec()
            tied = [np.concatenate([tied[0], turned / SURVEYED_SD_RAD])]
        return tied

    def _guesses(self, tag_id: int, size_m: float) -> list[Matrix]:
        """Return poses of a tag by each of its nearest images alone."""
        views = [(i, view) for i, view in enumerate(self._views) if tag_id in view.rays]
        nearest = sorted(views, key=lambda view: -float(np.ptp(view[1].rays[tag_id], axis=0).max()))[:MIN_VIEWS]
        guesses: list[Matrix] = []
        for i, view in nearest:
            seen = poses_of_square(view.rays[tag_id], size_m)
            guesses.extend(self._bases[i] @ view.base_from_camera @ matrix for matrix in seen)
        return guesses

    def _first_guess(self, tag_id: int, size_m: float, surveyed: Mapping[int, Tag]) -> Matrix:
        """Return the pose by one image that explains the other images best, given the robot's approximate poses."""
        if tag_id in surveyed and len(surveyed) == 1:
            return surveyed[tag_id].matrix
        views = [(i, view) for i, view in enumerate(self._views) if tag_id in view.rays]
        guesses = self._guesses(tag_id, size_m)
        if not guesses:
            raise CalibrationFailed(f"tag {tag_id}: no image of it gives a pose", "take images from nearer")
        corners = unit_corners() * size_m

        def misfit(pose: Matrix) -> float:
            errors = []
            for i, view in views:
                camera = self._bases[i] @ view.base_from_camera
                seen = (corners @ pose[:3, :3].T + pose[:3, 3] - camera[:3, 3]) @ camera[:3, :3]
                errors.append(float(np.abs(seen[:, :2] / np.maximum(seen[:, 2:], 1e-3) - view.rays[tag_id]).mean()))
            return float(np.median(errors))

        return min(guesses, key=misfit)


def _displaced(poses: Vector, moves: Vector) -> Vector:
    displaced = np.array(poses)
    displaced[:, :3, 3] += moves[:, :3]
    displaced[:, :3, :3] = poses[:, :3, :3] @ Rotation.from_rotvec(moves[:, 3:]).as_matrix()
    return displaced


def _on_floor(pose: SE2) -> Matrix:
    return transform((pose.x_m, pose.y_m, 0.0), rotation_rpy(0.0, 0.0, pose.yaw_rad))


def _planar(base: Matrix) -> SE2:
    return SE2(float(base[0, 3]), float(base[1, 3]), math.atan2(base[1, 0], base[0, 0]))
