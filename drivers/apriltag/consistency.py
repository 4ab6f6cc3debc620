"""Tags that contradict the others: moved since they were surveyed, or not of the map's size."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from drivers.apriltag.pose import GATE, FloorPrior, Geometry, Sighting, Solution, initial_poses, refine
from robot_runtime.scenes.tag_map import poses_of_square

CONFIRMATIONS = 3
"""Images in a row that must agree before a tag is rejected or accepted again: a passer-by may cover half a tag."""

SIZE_TOLERANCE = 0.02
SIZES = (0.4, 2.5)
"""Range of the ratio of printed to stated size that is searched."""


@dataclass(frozen=True)
class Inconsistency:
    """One event about a tag.

    Attributes:
        kind: ``anchor_moved``, ``scale`` or ``fix``.
        detail: the event's text.
    """

    kind: str
    detail: str


class TagConsistencyMonitor:
    """Monitor of the tags whose position or size contradicts the others.

    Attributes:
        rejected: ids that are ignored until they fit the others again.
    """

    def __init__(self) -> None:
        self.rejected: set[int] = set()
        self._misfits: Counter[int] = Counter()
        self._fits: Counter[int] = Counter()

    def update(
        self, sightings: Sequence[Sighting], solution: Solution, geometry: Geometry, confirmed: bool
    ) -> list[Inconsistency]:
        """Update the rejected tags by one image, and return the changes.

        Args:
            sightings: sightings of all tags in the image.
            solution: the pose that most of them agree on, with the fits of all ``sightings``.
            geometry: geometry that the solution was computed with.
            confirmed: whether odometry confirms the pose; without it a single tag cannot contradict another.
        """
        changes: list[Inconsistency] = []
        if len(solution.used) < 2 and not confirmed:
            return changes
        for number, sighting in enumerate(sightings):
            tag_id = sighting.tag.id
            agrees = number in solution.used or solution.fits[number] <= GATE
            self._misfits[tag_id] = 0 if agrees else self._misfits[tag_id] + 1
            self._fits[tag_id] = self._fits[tag_id] + 1 if agrees else 0
            if tag_id not in self.rejected and self._misfits[tag_id] >= CONFIRMATIONS:
                self.rejected.add(tag_id)
                changes.append(_explain(sighting, solution, geometry))
            elif tag_id in self.rejected and self._fits[tag_id] >= CONFIRMATIONS:
                self.rejected.remove(tag_id)
                changes.append(Inconsistency("fix", f"tag {tag_id} is where the map has it again"))
        return changes


def common_size(sightings: Sequence[Sighting], geometry: Geometry, stance: FloorPrior) -> Inconsistency | None:
    """Return the common scale under which contradicting tags agree, as a printer's scaling makes them; None without."""

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
    """Attribute a tag's misfit to another size at the same place, or to another place."""
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
    both = poses_of_square(sighting.rays, sighting.tag.size_m)
    seen = min(both, key=lambda m: float(np.linalg.norm(m[:3, 3] - expected.mean(axis=0))))
    off_m = float(np.linalg.norm(seen[:3, 3] - expected.mean(axis=0)))
    return Inconsistency("anchor_moved", f"tag {tag.id} is {off_m:.2f} m away from where the map has it")


def _resized(sighting: Sighting, ratio: float) -> Sighting:
    # A tag's size is limited to this range.
    size_m = float(np.clip(sighting.tag.size_m * ratio, 0.01, 2.0))
    return replace(sighting, tag=replace(sighting.tag, size_m=size_m))


def _perimeter(corners: np.ndarray) -> float:
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1).sum())
