"""Survey of tag poses from many images by bundle adjustment.

Unknown are the pose of each tag and of the robot at each image. Corners in the images, the floor, and odometry between
images constrain them. The frame ``map`` is defined by separately surveyed tags (one with its complete pose, or the
positions of several), or by the logged poses.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drivers.apriltag.bundle_adjustment import CORNER_SD_PX, MIN_VIEWS, Problem, TagView
from drivers.apriltag.pose import CameraOnRobot, FloorPrior, Sighting, Vector, solve
from robot_runtime.errors import CalibrationFailed
from robot_runtime.scenes.tag_map import Tag

HELD_OUT_EVERY = 5
MAX_RMS_PX = 1.0
"""Root mean square of a tag's corner errors beyond which the tag is doubtful."""
ROUNDS = 3
"""Greatest number of restarts that correct mirror solutions."""


@dataclass(frozen=True)
class Survey:
    """Result of a survey.

    Attributes:
        tags: tags in ``map`` by id, with the number of images and the root mean square of the corner errors of each.
        rms_px: root mean square of all corner errors.
        held_out_rms_px: the same of images that were not used; None if there were too few.
        views: number of used images.
        held_out: number of held-out images.
        path_length_ratio: solved path length between images over odometry's; None without odometry.
    """

    tags: tuple[Tag, ...]
    rms_px: float
    held_out_rms_px: float | None
    views: int
    held_out: int
    path_length_ratio: float | None

    @property
    def doubtful(self) -> tuple[Tag, ...]:
        """Tags that fit badly, the worst first: moved meanwhile, bent, or not of the stated size."""
        bad = [tag for tag in self.tags if tag.rms_px is not None and tag.rms_px > MAX_RMS_PX]
        return tuple(sorted(bad, key=lambda tag: tag.rms_px or 0.0, reverse=True))


def survey(
    views: Sequence[TagView], sizes_m: Mapping[int, float], surveyed: Mapping[int, Tag], stance: FloorPrior
) -> Survey:
    """Solve for the tags' poses.

    Args:
        views: images with tags.
        sizes_m: edge of the black square by id; tags without one are left out.
        surveyed: tags whose pose (one) or positions (several) in ``map`` are known; empty to use the views' poses.
        stance: standard deviations of the floor.

    Raises:
        CalibrationFailed: too few images, a surveyed tag that is in no image, or no convergence.
    """
    seen = [view for view in views if any(tag_id in sizes_m for tag_id in view.rays)]
    held_out = seen[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY] if len(seen) >= 2 * HELD_OUT_EVERY else []
    used = [view for view in seen if view not in held_out]
    if len(used) < MIN_VIEWS:
        raise CalibrationFailed(
            f"a survey needs {MIN_VIEWS} images with tags, there are {len(used)} of {len(views)}",
            "drive through the rooms again, slowly, 1 to 3 m from the walls, and give all logs",
        )
    problem = Problem(used, sizes_m, surveyed, stance)
    x = problem.solve()
    for _ in range(ROUNDS):
        turned = problem.restart(x)
        x = problem.solve()
        if not turned:
            break
    tags, bases = problem.result(x)
    _, rms_px = problem.corner_errors(x)
    return Survey(
        tags,
        rms_px,
        _held_out_rms_px(held_out, tags, stance),
        len(used),
        len(held_out),
        _path_length_ratio(used, bases),
    )


def _held_out_rms_px(held_out: Sequence[TagView], tags: Sequence[Tag], stance: FloorPrior) -> float | None:
    """Return the root mean square of the corner errors of unused images, in pixels."""
    by_id = {tag.id: tag for tag in tags}
    squares: list[float] = []
    for view in held_out:
        sd = CORNER_SD_PX / view.focal_px
        sightings = [Sighting(by_id[tag_id], rays, sd) for tag_id, rays in view.rays.items() if tag_id in by_id]
        solutions = solve(sightings, CameraOnRobot(view.base_from_camera), stance)
        # An image of a single tag always fits by a pose of its own and verifies nothing.
        if len(sightings) > 1:
            fits = solutions[0].fits if solutions else [math.inf] * len(sightings)
            squares.extend(fit / 4 * CORNER_SD_PX**2 for fit in fits)
    return math.sqrt(float(np.mean(squares))) if squares else None


def _path_length_ratio(views: Sequence[TagView], bases: Vector) -> float | None:
    driven_m = found_m = 0.0
    for i in range(1, len(views)):
        before, after = views[i - 1].odom, views[i].odom
        if views[i].run == views[i - 1].run and before is not None and after is not None:
            driven_m += before.distance_to(after)
            found_m += float(np.linalg.norm(bases[i][:2, 3] - bases[i - 1][:2, 3]))
    return found_m / driven_m if driven_m > 0 else None
