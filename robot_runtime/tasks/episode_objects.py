"""Objects that episodes add to a scene.

A dataset names a model file per object (``template``); here an object is the box that its model fills. Sizes of the YCB
set are those of its paper (Calli et al. 2015, "The YCB Object and Model Set", table 2). ``box_30x30x120`` is a box of
these edges in centimeters; everything else is a cube of the size of a hand.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from robot_runtime.scenes.objects import Point3
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.tasks.episode import Episode, EpisodeDetails, RearrangedObject

DEFAULT_SIZE_M: Point3 = (0.1, 0.1, 0.1)

YCB_SIZE_M: dict[str, Point3] = {
    "master_chef_can": (0.102, 0.102, 0.139),
    "cracker_box": (0.060, 0.160, 0.230),
    "sugar_box": (0.038, 0.089, 0.175),
    "tomato_soup_can": (0.066, 0.066, 0.101),
    "mustard_bottle": (0.050, 0.085, 0.175),
    "tuna_fish_can": (0.085, 0.085, 0.033),
    "pudding_box": (0.035, 0.110, 0.089),
    "gelatin_box": (0.028, 0.085, 0.073),
    "potted_meat_can": (0.050, 0.097, 0.082),
    "banana": (0.036, 0.190, 0.036),
    "apple": (0.075, 0.075, 0.075),
    "lemon": (0.054, 0.068, 0.054),
    "peach": (0.059, 0.059, 0.059),
    "pear": (0.066, 0.100, 0.066),
    "orange": (0.073, 0.073, 0.073),
    "plum": (0.052, 0.052, 0.052),
    "pitcher_base": (0.108, 0.108, 0.235),
    "bleach_cleanser": (0.065, 0.098, 0.250),
    "bowl": (0.159, 0.159, 0.053),
    "mug": (0.080, 0.080, 0.082),
    "power_drill": (0.035, 0.046, 0.184),
    "foam_brick": (0.050, 0.075, 0.050),
    "rubiks_cube": (0.057, 0.057, 0.057),
}

_BOX = re.compile(r"box_(\d{1,3})x(\d{1,3})x(\d{1,3})")


def size_of(item: RearrangedObject, scene: Scene) -> Point3:
    """Edges of an episode's object, meters: the scene's, if it has the object, else the model's."""
    for known in scene.objects:
        if known.id == item.id:
            return known.size
    return model_size_m(item.template or item.category or item.id)


def model_size_m(template: str) -> Point3:
    """Edges of the box that a model fills, meters."""
    model = Path(template).name.split(".")[0].lower()
    if edges := _BOX.fullmatch(model):
        length_cm, width_cm, height_cm = (max(1, int(edge)) for edge in edges.groups())
        return length_cm / 100, width_cm / 100, height_cm / 100
    return YCB_SIZE_M.get(re.sub(r"^\d+(-[a-z])?_", "", model), DEFAULT_SIZE_M)


def added_objects(scene: Scene, episodes: Iterable[Episode]) -> tuple[SceneObject, ...]:
    """The objects that the episodes add to the scene, each once, at the start of the first episode that has it."""
    known = {item.id for item in scene.objects}
    found: dict[str, SceneObject] = {}
    for episode in episodes:
        for item in EpisodeDetails.of(episode).objects_to_move:
            # An object that only opens has no model that could be added.
            opens = item.start.openness is not None and item.template is None
            if item.id not in known and item.id not in found and not opens:
                category = item.category or item.id
                found[item.id] = SceneObject(item.id, category, item.start.position, size_of(item, scene), movable=True)
    return tuple(found.values())
