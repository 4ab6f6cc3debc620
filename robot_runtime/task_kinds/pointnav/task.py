"""Episodes of point-goal navigation."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import Self, override

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.tasks.episode import EpisodeDetails


@dataclass(frozen=True)
class GoalImage(EpisodeDetails, config.Strict):
    """What episodes with the sensor ``imagegoal`` have besides the common fields.

    Attributes:
        goal_image: PNG or JPEG as ``data:`` URL; in the runtime's own YAML also a file's path, from the YAML's folder.
    """

    goal_image: str = ""
    seen: ClassVar[tuple[str, ...]] = ("goal_image",)

    @classmethod
    @override
    def from_yaml(cls, fields: Mapping[str, Any], path: Path, where: str) -> Self:
        given = str(fields["goal_image"])
        try:
            url = given if given.startswith("data:") else cls.url((path.parent / given).read_bytes())
        except OSError as error:
            raise ConfigError(
                f"{path}: {where}goal_image {given!r} cannot be read: {error.strerror}", "name a PNG or JPEG"
            ) from error
        return cls(url)

    @property
    @override
    def has_end(self) -> bool:
        return False

    @staticmethod
    def url(data: bytes) -> str:
        """A PNG or JPEG as ``goal_image``."""
        return f"data:image/png;base64,{base64.b64encode(data).decode()}"
