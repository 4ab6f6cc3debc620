"""AprilTags in raw images: where their corners are, and the pose of one of them."""

from __future__ import annotations

from collections import Counter

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.hal.lens import Lens
from robot_runtime.scenes.tag_map import CELLS, unit_corners

Array = NDArray[np.float64]

ORDER = (1, 0, 3, 2)
"""OpenCV has the family upside down: its first two corners are the lower right and lower left ones of who sees the tag
upright, and the order here is that of ``tag_map.Tag.corners``."""

SMALLEST_PX = 12.0
"""Of a tag's edge; smaller ones have too few pixels along it."""

RIM_PX = 4.0
"""Corners nearer to the image's edge are not to be trusted."""

SAMPLES = 32
"""Along a side, between its corners, where the edge is looked for."""

CORNER_SHARE = 0.12
"""Of a side, at either end, that is left out: there the other side's edge is near."""

ACROSS = np.linspace(-0.75, 0.75, 25)
"""Across a side, where the picture is sampled, in cells of the tag: black inside, white rim outside."""

REACH_PX = (1.3, 3.0)
"""A cell counts as at least and at most so many pixels."""

PASSES = 3
"""Each starts from the corners of the one before; the first may be off by more than a pixel."""


class TagDetector:
    """Finds tags of the family 36h11, with corners to a tenth of a pixel.

    Corners are where the sides meet, and sides are straight lines through their edges' points, once the lens is taken
    out: that uses a hundred pixels for each corner, and the lens does not bend it.
    """

    def __init__(self) -> None:
        parameters = cv2.aruco.DetectorParameters()
        parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_NONE
        family = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
        self._detector = cv2.aruco.ArucoDetector(family, parameters)

    def detect(self, rgb: NDArray[np.uint8], lens: Lens) -> dict[int, Array]:
        """Corners, float64 (4, 2) pixels, by id; the order is that of ``tag_map.Tag.corners``.

        A tag that is seen twice is a copy or a reflection: neither counts.
        """
        grey = np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.uint8)
        found, ids, _ = self._detector.detectMarkers(grey)
        numbers = [] if ids is None else np.ravel(ids).tolist()
        times = Counter(numbers)
        seen = {}
        for number, corners in zip(numbers, found, strict=True):
            rough = np.asarray(corners, np.float64).reshape(4, 2)[list(ORDER)]
            inside = (rough > RIM_PX).all() and (rough < (lens.width - 1 - RIM_PX, lens.height - 1 - RIM_PX)).all()
            edge_px = float(np.linalg.norm(rough - np.roll(rough, 1, axis=0), axis=1).min())
            if times[number] == 1 and inside and edge_px >= SMALLEST_PX:
                refined = rough
                for _ in range(PASSES):
                    refined = _refined(grey, refined, lens)
                # A side in a shadow's edge or behind something pulls its corners away.
                if np.isfinite(refined).all() and np.linalg.norm(refined - rough, axis=1).max() < RIM_PX / 2:
                    seen[number] = refined
        return seen


def _refined(grey: NDArray[np.uint8], rough: Array, lens: Lens) -> Array:
    """Corners where the sides' lines meet, float64 (4, 2)."""
    lines = []
    for start, end, *opposite in zip(*(np.roll(rough, -turn, axis=0) for turn in range(4)), strict=True):
        along = end - start
        normal = np.array([-along[1], along[0]]) / np.linalg.norm(along)
        cell_px = float(np.abs((np.array(opposite) - start) @ normal).min()) / CELLS
        across = ACROSS * np.clip(cell_px, *REACH_PX)
        share = np.linspace(CORNER_SHARE, 1 - CORNER_SHARE, SAMPLES)[:, None]
        middles = start + share * along
        at = (middles[:, None] + across[:, None] * normal).astype(np.float32)
        profile = cv2.remap(grey, at[..., 0], at[..., 1], cv2.INTER_LINEAR).astype(np.float64)
        steepness = np.abs(np.diff(profile, axis=1))
        offset = (steepness * (across[1:] + across[:-1]) / 2).sum(axis=1) / np.maximum(steepness.sum(axis=1), 1e-9)
        lines.append(_line(lens.rays(middles + offset[:, None] * normal)[:, :2]))
    # The line from corner i to i + 1, and the one before it, meet in corner i; a line is (a, b, c), ax + by = c.
    meets = np.cross(np.roll(lines, 1, axis=0), lines)
    ideal = meets[:, :2] / -meets[:, 2:]
    return lens.project(np.column_stack([ideal, np.ones(4)]))


def _line(points: Array) -> tuple[float, float, float]:
    """The line (a, b, c), ax + by = c, that is nearest to the points: twice, the second time without the farthest."""
    for _ in range(2):
        middle = points.mean(axis=0)
        _, _, axes = np.linalg.svd(points - middle)
        distance = np.abs((points - middle) @ axes[1])
        points = points[distance <= np.maximum(3 * np.median(distance), 1e-12)]
    a, b = axes[1]
    return float(a), float(b), float(middle @ axes[1])


def tag_poses(lens: Lens, pixels: Array, size_m: float) -> list[Array]:
    """Both poses of a tag that its corners allow, the better first: float64 (4, 4), tag to optical frame.

    Its picture alone hardly tells to which side a distant tag is turned.
    """
    rays = lens.rays(pixels)[:, :2]
    # Corners in the tag's frame as OpenCV wants a square: upper left, upper right, lower right, lower left.
    order = [3, 2, 1, 0]
    corners = unit_corners()[order] * size_m
    square = np.column_stack([corners[:, 1], corners[:, 2], np.zeros(4)])
    _, turns, shifts, _ = cv2.solvePnPGeneric(square, rays[order], np.eye(3), None, flags=cv2.SOLVEPNP_IPPE_SQUARE)
    poses = []
    for turn, shift in zip(turns, shifts, strict=True):
        pose = np.eye(4)
        # The square's axes are the tag's y, z and x.
        pose[:3, :3] = cv2.Rodrigues(turn)[0] @ np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
        pose[:3, 3] = shift.ravel()
        poses.append(pose)
    return poses


def corners_of(pose: Array, size_m: float) -> Array:
    """A tag's corners in the frame that its pose is in, float64 (4, 3)."""
    return np.asarray(unit_corners() * size_m @ pose[:3, :3].T + pose[:3, 3])
