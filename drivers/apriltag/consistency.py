"""Tags that do not fit the others: moved since they were surveyed, or not as large as the map says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from drivers.apriltag.pose import GATE, FloorPrior, Geometry, Sighting, Solution, camera_from_tag, initial_poses, refine

LOOKS = 3
"""So many images in a row must say so: a passer-by covers half a tag for a moment."""

SIZE_TOLERANCE = 0.02
SIZES = (0.4, 2.5)
"""Printed sizes over stated ones that are looked for."""


@dataclass(frozen=True)
class Inconsistency:
    """What is wrong with a tag: an event's kind and sentence."""

    kind: str
    detail: str


class TagConsistencyMonitor:
    """Which tags not to believe.

    Attributes:
        rejected: ids whose sightings count for nothing until they fit the others again.
    """

    def __init__(self) -> None:
        self.rejected: set[int] = set()
        self._strikes: Counter[int] = Counter()
        self._fits: Counter[int] = Counter()

    def update(
        self, sightings: Sequence[Sighting], solution: Solution, geometry: Geometry, confirmed: bool
    ) -> list[Inconsistency]:
        """What an image says about its tags, given the pose that most of them agree on; news only.

        Args:
            sightings: of all tags in the image.
            solution: the pose that most of them agree on, with the fits of all ``sightings``.
            geometry: that the solution was computed with.
            confirmed: whether odometry confirms the pose; without it a single tag cannot contradict another.
        """
        changes: list[Inconsistency] = []
        if len(solution.used) < 2 and not confirmed:
            return changes
        for number, sighting in enumerate(sightings):
            tag_id = sighting.tag.id
            agrees = number in solution.used or solution.fits[number] <= GATE
            self._strikes[tag_id] = 0 if agrees else self._strikes[tag_id] + 1
            self._fits[tag_id] = self._fits[tag_id] + 1 if agrees else 0
            if tag_id not in self.rejected and self._strikes[tag_id] >= LOOKS:
                self.rejected.add(tag_id)
                changes.append(_explain(sighting, solution, geometry))
            elif tag_id in self.rejected and self._fits[tag_id] >= LOOKS:
                self.rejected.remove(tag_id)
                changes.append(Inconsistency("fix", f"tag {tag_id} is where the map has it again"))
        return changes


def common_size(sightings: Sequence[Sighting], geometry: Geometry, stance: FloorPrior) -> Inconsistency | None:
    """Whether tags that contradict each other agree once all are as large as a printer made them; None if not."""

    def misfit(log_ratio: float) -> float:
        scaled = [_resized(sighting, float(np.exp(log_ratio))) for sighting in sightings]
        every = tuple(range(len(scaled)))
        nearest = max(scaled, key=lambda sighting: _perimeter(sighting.rays))
        tried = [refine(scaled, every, geometry, stance, start).cost for start in initial_poses(nearest, geometry)]
        return min(tried, default=float("inf"))

    low, high = np.log(SIZES)
    grid = np.linspace(low, high, 25)
    best, step = grid[int(np.argmin([misfit(value) for value in grid]))], grid[1] - grid[0]
    found = minimize_scalar(misfit, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-3})
    ratio = float(np.exp(found.x))
    if found.fun > GATE * len(sightings) or abs(ratio - 1) < SIZE_TOLERANCE:
        return None
    ids = ", ".join(str(sighting.tag.id) for sighting in sightings)
    return Inconsistency("scale", f"tags {ids} fit together if they are {100 * ratio:.1f} % as large as their size_m")


def _explain(sighting: Sighting, solution: Solution, geometry: Geometry) -> Inconsistency:
    """Another size in the same place, or another place."""
    tag = sighting.tag
    expected, _ = geometry.in_camera(solution.matrix, tag.corners)
    ideal = expected[:, :2] / expected[:, 2:]
    ratio = _perimeter(sighting.rays) / _perimeter(ideal)
    resized = _resized(sighting, ratio)
    points, _ = geometry.in_camera(solution.matrix, resized.tag.corners)
    misfit = np.square((points[:, :2] / points[:, 2:] - sighting.rays) / sighting.sd).sum()
    if misfit <= 2 * GATE and abs(ratio - 1) > SIZE_TOLERANCE:
        return Inconsistency(
            "scale",
            f"tag {tag.id} is where the map has it, but {tag.size_m * ratio:.3f} m large instead of {tag.size_m:g} m",
        )
    seen = min(camera_from_tag(sighting), key=lambda m: float(np.linalg.norm(m[:3, 3] - expected.mean(axis=0))))
    off_m = float(np.linalg.norm(seen[:3, 3] - expected.mean(axis=0)))
    return Inconsistency("anchor_moved", f"tag {tag.id} is {off_m:.2f} m away from where the map has it")


def _resized(sighting: Sighting, ratio: float) -> Sighting:
    # Beyond the sizes that tags have it would be no tag.
    size_m = float(np.clip(sighting.tag.size_m * ratio, 0.01, 2.0))
    return replace(sighting, tag=replace(sighting.tag, size_m=size_m))


def _perimeter(corners: np.ndarray) -> float:
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1).sum())
