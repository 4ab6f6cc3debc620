"""Question about a scene, with its answer and objects."""

import hashlib
from dataclasses import dataclass

from robot_runtime.common import config


@dataclass(frozen=True)
class SceneQuestion(config.Strict):
    """A question about one scene.

    Attributes:
        scene: its name.
        type: the template.
        text: text of the question.
        answer: answer in words.
        targets: ids of the objects of which any one, once seen, gives the answer: the robot's goals. Empty where no
            single object does: absence, several to count, rooms, distances.
        objects: ids of all objects in question and answer, in the order of the text.
        rooms: ids of the rooms in them, in the same order.
    """

    scene: str
    type: str
    text: str
    answer: str
    targets: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``scene/0123456789ab``, a hash of scene and text."""
        return f"{self.scene}/{hashlib.sha256(f'{self.scene}/{self.text}'.encode()).hexdigest()[:12]}"

    @property
    def words(self) -> tuple[str, ...]:
        """The text in lower-case words; the question mark is one too."""
        return tuple(self.text.lower().replace("?", " ?").split())
