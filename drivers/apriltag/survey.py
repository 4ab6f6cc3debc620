"""Where tags hang, from many images of them: bundle adjustment.

Everything is unknown at once: each tag's pose, and the robot's at each image. What holds them together are the corners
in the images, that the robot stands on a floor, and its odometry from one image to the next. What ties them to ``map``
is tags that were surveyed otherwise: one with its whole pose, or the places of several; without any, it is the poses
that the log has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drivers.apriltag.bundle_adjustment import CORNER_SD_PX, MIN_VIEWS, Problem, TagView, minimized
from drivers.apriltag.pose import CameraOnRobot, FloorPrior, Sighting, Vector, solve
from robot_runtime.errors import CalibrationFailed
from robot_runtime.scenes.tag_map import Tag

HELD_OUT_EVERY = 5
MAX_RMS_PX = 1.0
"""Root mean square of a tag's corners beyond which something is wrong with it."""
ROUNDS = 3
"""How often tags may be taken for their mirror images and found out."""


@dataclass(frozen=True)
class Survey:
    """What came out.

    Attributes:
        tags: in ``map``, by id, with how many images saw each and the root mean square of its corners.
        rms_px: of all corners. held_out_rms_px: of those of images that took no part, from a pose of their own; None
            where there were too few.
        looks, held_out: how many images.
        path_length_ratio: the way between images as it came out, over odometry's; None without odometry.
    """

    tags: tuple[Tag, ...]
    rms_px: float
    held_out_rms_px: float | None
    looks: int
    held_out: int
    path_length_ratio: float | None

    @property
    def doubtful(self) -> tuple[Tag, ...]:
        """Tags that fit badly, the worst first: moved meanwhile, bent, or not as large as was said."""
        bad = [tag for tag in self.tags if tag.rms_px is not None and tag.rms_px > MAX_RMS_PX]
        return tuple(sorted(bad, key=lambda tag: tag.rms_px or 0.0, reverse=True))


def survey(
    looks: Sequence[TagView], sizes_m: Mapping[int, float], surveyed: Mapping[int, Tag], stance: FloorPrior
) -> Survey:
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
    if len(used) < MIN_VIEWS:
        raise CalibrationFailed(
            f"a survey needs {MIN_VIEWS} images with tags, there are {len(used)} of {len(looks)}",
            "drive through the rooms again, slowly, 1 to 3 m from the walls, and give all logs",
        )
    problem = Problem(used, sizes_m, surveyed, stance)
    x = minimized(problem)
    for _ in range(ROUNDS):
        turned = problem.restart(x)
        x = minimized(problem)
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


def _path_length_ratio(looks: Sequence[TagView], bases: Vector) -> float | None:
    driven_m = found_m = 0.0
    for i in range(1, len(looks)):
        before, after = looks[i - 1].odom, looks[i].odom
        if looks[i].run == looks[i - 1].run and before is not None and after is not None:
            driven_m += before.distance_to(after)
            found_m += float(np.linalg.norm(bases[i][:2, 3] - bases[i - 1][:2, 3]))
    return found_m / driven_m if driven_m > 0 else None
