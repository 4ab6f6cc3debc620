"""AprilTags of a site: poses in ``map`` and sizes. A YAML file, often ``tags.yaml`` in the scene's folder.

::

    schema: 1
    family: tag36h11
    tags:
    - {id: 0, size_m: 0.2, xyz_m: [2.96, 1.5, 1.0], rpy_deg: [0, 0, 180]}   # on a wall, visible in direction +x
    - {id: 7, size_m: 0.2, xyz_m: [1.0, 1.0, 0.0], rpy_deg: [0, -90, 0]}    # on the floor
    survey: {date: 2026-11-22, rms_px: 0.11}                                # free words and numbers

A tag's frame has its origin in the center of the image, x out of its face, z to the image's top, and y to the viewer's
right. A tag that hangs upright on a wall is rotated about z alone, by the heading of its face. ``size_m`` is the edge
of the black square, without the white border. ``robot-runtime tags survey`` writes such a file, ``robot-runtime tags
make`` prints the tags.
"""

import functools
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.quantities import MapCoordinate, TagSize
from robot_runtime.common.transforms import Matrix, Offset, Point3, transform
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.errors import ConfigError
from robot_runtime.scenes.scene import Scene

Family = Literal["tag36h11"]

TAG_COUNT = 587
"""Number of tags in the family."""

CELLS = 8
"""Black and white cells along the edge of the black square; the white border adds one on each side."""

FILE_NAME = "tags.yaml"
"""Name of a scene's own map in its folder."""


@dataclass(frozen=True)
class Tag(config.Strict):
    """One tag.

    Attributes:
        size_m: edge of the black square.
        xyz_m: position in its parent (``map``, or ``base_link`` for a tag on a robot), as in URDF.
        rpy_deg: rotation in its parent, as in URDF.
        looks: number of images in its survey; None without one.
        rms_px: residual of its corners in the survey; None without one.
    """

    id: int
    size_m: TagSize
    xyz_m: tuple[MapCoordinate, MapCoordinate, MapCoordinate]
    rpy_deg: Point3 = (0.0, 0.0, 0.0)
    looks: int | None = None
    rms_px: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.id < TAG_COUNT:
            raise ValueError(f"tag36h11 has the ids 0 to {TAG_COUNT - 1}, got {self.id}")

    @property
    def matrix(self) -> Matrix:
        """Transform from the tag's frame to its parent, float64 (4, 4)."""
        return Offset(self.xyz_m, self.rpy_deg).matrix

    @property
    def corners(self) -> NDArray[np.float64]:
        """The black square's corners in the parent frame, float64 (4, 3), meters.

        The order is lower left, lower right, upper right, upper left for a viewer of the upright image.
        """
        matrix = self.matrix
        return np.asarray(unit_corners() * self.size_m @ matrix[:3, :3].T + matrix[:3, 3])


@dataclass(frozen=True)
class TagMap(config.Strict):
    """The content of a tag map.

    Attributes:
        schema: version of this format, 1.
        survey: author, date and quality of the measurement; free words and numbers.
    """

    schema: Literal[1]
    family: Family
    tags: tuple[Tag, ...]
    survey: dict[str, str | int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.tags:
            raise ValueError("a tag map needs at least one tag")
        repeated = [tag_id for tag_id, count in Counter(tag.id for tag in self.tags).items() if count > 1]
        if repeated:
            raise ValueError(f"tag {repeated[0]} is there twice: every tag of a site needs an id of its own")

    @functools.cached_property
    def by_id(self) -> dict[int, Tag]:
        """The tags by id."""
        return {tag.id: tag for tag in self.tags}


def load_tag_map(path: Path) -> TagMap:
    """Read a tag map.

    Raises:
        ConfigError: malformed, empty, a repeated or unknown id, an implausible size; names file and id.
    """
    try:
        return config.load(path, TagMap)
    except config.FieldError as error:
        if error.place[:1] in (("standalone_tags",), ("tag_bundles",)):
            remedy = f"convert it: `robot-runtime calibrate import {path} --at X,Y,Z,YAW_DEG --out FILE`"
            raise ConfigError(f"{path}: is a tag file of apriltag_ros", remedy) from error
        raise


def write_tag_map(path: Path, tags: TagMap) -> None:
    """Write a tag map as YAML, one line per tag."""
    document = config.unparse(tags)
    lines = [dump_yaml(tag, default_flow_style=True, width=1000).strip() for tag in document.pop("tags")]
    survey = document.pop("survey")
    head = dump_yaml(document)
    tail = dump_yaml({"survey": survey}, width=120)
    path.write_text(head + "tags:\n" + "".join(f"- {line}\n" for line in lines) + tail, encoding="utf-8")


def find_tag_map(name: str, scene: Scene | None, where: str) -> Path:
    """The file that an option names: ``scene`` is ``tags.yaml`` in the scene's folder, all else a path.

    Raises:
        ConfigError: there is no such file; names it and ``where``.
    """
    if name == "scene" and scene is None:
        raise ConfigError(f"{where}: names the scene's tags, and there is no scene", "use a scene, or a file of tags")
    path = scene.folder / FILE_NAME if name == "scene" and scene is not None else Path(name)
    if not path.is_file():
        raise ConfigError(
            f"{where}: there is no tag map {path}",
            "survey the tags with `robot-runtime tags survey`, or name the file that has them",
        )
    return path


def unit_corners() -> NDArray[np.float64]:
    """Corners of a black square of edge 1 in the tag's frame, float64 (4, 3), in the order of :attr:`Tag.corners`."""
    return np.array([(0.0, -0.5, -0.5), (0.0, 0.5, -0.5), (0.0, 0.5, 0.5), (0.0, -0.5, 0.5)])


def poses_of_square(rays: NDArray[np.float64], size_m: float) -> list[Matrix]:
    """Both poses of a tag by its own corners, not refined: float64 (4, 4), tag to optical frame; none of a bad square.

    The first is decomposed from the homography; the second is its mirror image, which a camera without perspective
    could not distinguish. (OpenCV 5's ``SOLVEPNP_IPPE_SQUARE`` returns NaN or a wrong pose for upright tags.)

    Args:
        rays: float64 (4, 2), x / z and y / z of the corners in the optical frame, undistorted.
        size_m: edge of the black square.
    """
    rows = []
    for (_, across, up), (u, v) in zip(unit_corners() * size_m, rays, strict=True):
        rows.append((across, up, 1, 0, 0, 0, -u * across, -u * up, -u))
        rows.append((0, 0, 0, across, up, 1, -v * across, -v * up, -v))
    homography = np.linalg.svd(np.array(rows))[2][-1].reshape(3, 3)
    homography /= np.sign(homography[2, 2]) * np.sqrt(
        np.linalg.norm(homography[:, 0]) * np.linalg.norm(homography[:, 1])
    )
    place = homography[:, 2]
    if not (np.isfinite(homography).all() and place[2] > 0):
        return []
    sight = place / np.linalg.norm(place)
    found = []
    for axes in (homography[:, :2], homography[:, :2] - 2 * np.outer(sight, sight @ homography[:, :2])):
        # The nearest orthonormal pair of axes.
        left, _, right = np.linalg.svd(axes, full_matrices=False)
        across, up = (left @ right).T
        found.append(transform(tuple(place.tolist()), np.column_stack([np.cross(across, up), across, up])))
    return found


def tag_image(tag_id: int, cell_px: int = 1) -> NDArray[np.uint8]:
    """An upright tag with its white border: uint8 (10 * cell_px, 10 * cell_px), 0 or 255.

    Raises:
        ValueError: for an id that the family does not have.
    """
    if not 0 <= tag_id < TAG_COUNT:
        raise ValueError(f"tag36h11 has the ids 0 to {TAG_COUNT - 1}, got {tag_id}")
    family = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
    # OpenCV's images are rotated by 180 degrees against the AprilTag project's.
    cells = np.rot90(cv2.aruco.generateImageMarker(family, tag_id, CELLS, borderBits=1), 2)
    return np.pad(cells, 1, constant_values=255).astype(np.uint8).repeat(cell_px, axis=0).repeat(cell_px, axis=1)
