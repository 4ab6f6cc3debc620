"""A question about a scene, its answer, and what it is about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from robot_runtime.common import config


@dataclass(frozen=True)
class SceneQuestion:
    """A question about one scene.

    Attributes:
        scene: its name.
        type: the template.
        targets: ids of the objects of which any one, once seen, gives the answer: where a robot should go. Empty where
            no single object does: absence, several to count, rooms, distances.
        objects, rooms: ids of everything that question and answer speak of, in the order of speaking.
    """

    scene: str
    type: str
    text: str
    answer: str
    targets: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()

    __pydantic_config__ = config.STRICT

    @property
    def key(self) -> str:
        """``scene/0123456789ab``, from scene and text: the same wherever the question is written."""
        return f"{self.scene}/{hashlib.sha256(f'{self.scene}/{self.text}'.encode()).hexdigest()[:12]}"

    @property
    def words(self) -> tuple[str, ...]:
        """The text in lower-case words; the question mark is one too."""
        return tuple(self.text.lower().replace("?", " ?").split())
