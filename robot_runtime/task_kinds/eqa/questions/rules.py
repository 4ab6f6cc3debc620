"""Rules of the question engine: all of its constants, as data.

Das et al. 2018 (EmbodiedQA), section 3.2 and appendix A, and the authors' code (facebookresearch/EmbodiedQA,
``data/question-gen``) differ; :data:`PAPER` and :data:`CODE` state each:

====================  ==========================================  ==========================================
constant              paper                                       code
====================  ==========================================  ==========================================
``max_count``         "greater than 5" are dropped (appendix A);  ``count <= 5``
                      section 3.2 says "(>= 5)" are
``max_room_count``    5, as above                                 ``count < 5``
distance              gap of at least 2 m                         near <= 0.2 m and far >= 2.0 m
office, lobby         allowed (figure 2b)                         blacklisted
tiny objects          a list                                      the list, and boxes under 0.0005 m3
relations             no numbers                                  0.05 m, between the boxes' nearest corners
``unique(objects)``   among the objects of all selected rooms     the same
====================  ==========================================  ==========================================

The presets do not reproduce errors of the code: its distance question asks whether OBJ1 is closer to OBJ2 than to OBJ3,
but measures both distances from OBJ2, so that "no" can be wrong; here both are measured from OBJ1. Its questions with
"or" and with "farther" are not among the nine templates of the paper and are omitted.

The published blacklists are words of SUNCG's vocabulary. The lists below apply their rule to this project's scenes:
nothing tiny, vague, transparent, or part of the building.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from robot_runtime.common import config
from robot_runtime.errors import ConfigError

# fmt: off
NINE_TEMPLATES = (
    "location", "color", "color_room", "preposition", "existence", "logical", "count", "room_count", "distance",
)
# fmt: on
V1_TEMPLATES = NINE_TEMPLATES[:4]
"""EQA v1, which the paper's experiments use: the types with one object to go to."""
FURTHER_TEMPLATES = ("relation", "room_object_count")
"""Templates of the published code only: ``relate``, a preposition without a room, and the number of rooms with an
object.
"""


@dataclass(frozen=True)
class RelationRules(config.Strict):
    """Thresholds of relations; see :mod:`robot_runtime.task_kinds.eqa.questions.relations`.

    Attributes:
        touch_m: largest difference of heights that are equal.
        next_to_m: largest distance of footprints next to each other; up to twice this it is unclear.
        min_overlap: fraction of the smaller footprint that two things share if one is on, above or below the other.
        max_stray: largest fraction that counts as none; between the two it is unclear.
        likeliest: whether the thing that fits best is taken where none fits clearly: for boxes of which a robot saw a
            part. Questions are never generated so.
    """

    touch_m: float = 0.05
    next_to_m: float = 0.3
    min_overlap: float = 0.5
    max_stray: float = 0.1
    likeliest: bool = False

    def __post_init__(self) -> None:
        if not (self.touch_m > 0 and self.next_to_m > 0 and 0 <= self.max_stray < self.min_overlap <= 1):
            raise ValueError(f"relations need positive distances and 0 <= max_stray < min_overlap <= 1, got {self}")


@dataclass(frozen=True)
class DistanceRules(config.Strict):
    """Differences of two distances that are large enough to compare.

    Attributes:
        gap_m: smallest difference.
        near_m: upper limit of the smaller distance.
        far_m: lower limit of the larger distance.
    """

    gap_m: float = 2.0
    near_m: float | None = None
    far_m: float = 0.0

    def __post_init__(self) -> None:
        if self.gap_m <= 0 and (self.near_m is None or self.near_m >= self.far_m):
            raise ValueError(f"equal distances cannot be compared: give a gap_m, or near_m below far_m, got {self}")

    def clear(self, smaller_m: float, larger_m: float) -> bool:
        """Whether it is beyond doubt that the first distance is smaller."""
        near = self.near_m is None or smaller_m <= self.near_m
        return near and larger_m >= self.far_m and larger_m - smaller_m >= self.gap_m


@dataclass(frozen=True)
class QuestionRules(config.Strict):
    """Limits of the generated questions.

    Attributes:
        templates: templates of :data:`robot_runtime.task_kinds.eqa.questions.programs.TEMPLATES`.
        min_entropy: smallest normalized entropy of a question's answers over all scenes, 0..1; questions below can be
            answered without looking.
        min_environments: smallest number of scenes of a question, so that its entropy is meaningful.
        max_count: largest number of objects as an answer.
        max_room_count: largest number of rooms as an answer.
        distance: thresholds for comparisons.
        relations: thresholds for prepositions.
        unique_in: scope of ``unique(objects)`` after rooms were selected: each ``room``, which "the OBJ in the ROOM"
            needs, or the whole ``selection``, as in the paper's text and code.
        min_volume_m3: smallest box of an object in questions.
        seen_only: only objects with view points, so that the robot can see the answer.
        max_per_room: number of logical and of distance questions, which grows with the square and cube of the number of
            objects; the seed selects them. None: all.
        collapse: synonyms and hyponyms, as (name, replacement).
        confusable: groups of names that people confuse, such as "table" and "desk". Neither "no" nor a number is a
            certain answer about one of them while another is present.
        queryable_rooms: allowed names; None: any.
        queryable_objects: allowed names; None: any.
        room_blacklist: ambiguous names of rooms.
        object_blacklist: per template, names that are not allowed; ``all`` holds for each.
    """

    templates: tuple[str, ...] = NINE_TEMPLATES
    min_entropy: float = 0.5
    min_environments: int = 4
    max_count: int = 5
    max_room_count: int = 5
    distance: DistanceRules = DistanceRules()
    relations: RelationRules = RelationRules()
    unique_in: Literal["room", "selection"] = "room"
    min_volume_m3: float = 0.0
    seen_only: bool = False
    max_per_room: int | None = None
    collapse: tuple[tuple[str, str], ...] = ()
    confusable: tuple[tuple[str, ...], ...] = ()
    queryable_rooms: tuple[str, ...] | None = None
    queryable_objects: tuple[str, ...] | None = None
    room_blacklist: tuple[str, ...] = ()
    object_blacklist: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.min_entropy <= 1:
            raise ValueError(f"min_entropy must lie within 0 to 1, got {self.min_entropy}")
        for name in ("min_environments", "max_count", "max_room_count"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.max_per_room is not None and self.max_per_room < 0:
            raise ValueError(f"max_per_room cannot be negative, got {self.max_per_room}")
        if self.min_volume_m3 < 0:
            raise ValueError(f"min_volume_m3 cannot be negative, got {self.min_volume_m3}")

    def confused_with(self, name: str) -> frozenset[str]:
        """Other names that people might use for ``name``."""
        groups = (group for group in self.confusable if name in group)
        return frozenset(other for group in groups for other in group) - {name}

    def blacklisted(self, template: str) -> frozenset[str]:
        """The names that a template must not contain."""
        return frozenset(self.object_blacklist.get("all", ())) | frozenset(self.object_blacklist.get(template, ()))


_ONE_NAME = (
    ("armchair", "chair"),
    ("bench chair", "chair"),
    ("office chair", "chair"),
    ("basket ball", "basketball"),
    ("bread", "food"),
    ("coffee kettle", "kettle"),
    ("teapot", "kettle"),
    ("coffee table", "table"),
    ("dining table", "table"),
    ("side table", "table"),
    ("double bed", "bed"),
    ("single bed", "bed"),
    ("couch", "sofa"),
    ("dresser", "chest of drawers"),
    ("fishbowl", "fish tank"),
    ("house plant", "plant"),
    ("painting", "picture"),
    ("pillow", "cushion"),
    ("seasoningbox", "seasoning box"),
    ("securitycamera", "security camera"),
    ("tv", "television"),
)
_EQA_NAMES = (
    ("chest of drawers", "dresser"),
    ("laptop", "computer"),
    ("mug", "cup"),
    ("stove", "range oven"),
    ("study", "office"),
    ("tableware", "plates"),
    ("wardrobe", "wardrobe cabinet"),
)
# fmt: off
_EQA_ROOMS = (
    "balcony", "bathroom", "bedroom", "dining room", "elevator", "garage", "gym", "kitchen", "living room", "lobby",
    "office", "patio",
)
_EQA_OBJECTS = (
    "bathtub", "bed", "bookshelf", "chessboard", "coffee machine", "computer", "cup", "cutting board", "desk",
    "dishwasher", "dresser", "dressing table", "dryer", "fireplace", "fish tank", "food processor", "fruit bowl",
    "heater", "ironing board", "kettle", "knife rack", "loudspeaker", "microwave", "mirror", "ottoman", "pan", "piano",
    "plates", "playstation", "range oven", "refrigerator", "rug", "shoe rack", "shower", "sink", "sofa", "stereo set",
    "table", "television", "toilet", "towel rack", "tv stand", "utensil holder", "vacuum cleaner", "vase",
    "wardrobe cabinet", "washer", "water dispenser", "whiteboard", "xbox",
)
# fmt: on
_CONFUSABLE = (
    ("ball", "basketball"),
    ("bookshelf", "shelf", "shoe rack"),
    ("bowl", "cup", "mug", "tableware"),
    ("cabinet", "chest of drawers", "kitchen cabinet", "nightstand", "tv stand", "wardrobe"),
    ("chair", "gym equipment", "ottoman", "stool"),
    ("clothes", "towel"),
    ("computer", "laptop", "tablet"),
    ("counter", "desk", "nightstand", "table"),
    ("cushion", "quilt"),
)
# fmt: off
_UNCLEAR_ROOMS = (
    "aeration", "boiler room", "entryway", "freight elevator", "hall", "hallway", "loggia", "other",
    "passenger elevator", "room", "storage",
)
_UNCLEAR_OBJECTS = {
    "all": (
        "board", "column", "container", "decoration", "door", "glass", "household appliance", "kitchen cabinet",
        "object", "person", "pet", "range hood", "shelving", "stand", "stairs", "switch", "toy", "window",
    ),
    # The parts of these have different colors: frame and picture, leaves and pot, shade and foot.
    "color": ("clothes", "curtain", "mirror", "picture", "plant", "lamp", "rug", "kitchen utensils"),
}
# fmt: on

FEW_SCENES = QuestionRules(
    templates=(*NINE_TEMPLATES, *FURTHER_TEMPLATES),
    min_entropy=0.0,
    min_environments=1,
    seen_only=True,
    max_per_room=10,
    collapse=_ONE_NAME,
    confusable=_CONFUSABLE,
    room_blacklist=_UNCLEAR_ROOMS,
    object_blacklist=_UNCLEAR_OBJECTS,
)
"""For few scenes or a single one: no statistics over scenes, only questions whose answer the robot can see, and a
readable number of combinations.
"""

PAPER = QuestionRules(
    unique_in="selection",
    collapse=tuple(dict([*_ONE_NAME, *_EQA_NAMES, ("dresser", "dresser")]).items()),
    queryable_rooms=_EQA_ROOMS,
    queryable_objects=_EQA_OBJECTS,
    room_blacklist=_UNCLEAR_ROOMS,
    object_blacklist=_UNCLEAR_OBJECTS,
)
"""The paper's constants and names: the 12 rooms and 50 objects of figure 2."""

CODE = QuestionRules(
    templates=(*NINE_TEMPLATES, *FURTHER_TEMPLATES),
    max_room_count=4,
    distance=DistanceRules(gap_m=0.0, near_m=0.2, far_m=2.0),
    relations=RelationRules(next_to_m=0.05),
    unique_in="selection",
    min_volume_m3=0.0005,
    collapse=_ONE_NAME,
    room_blacklist=(*_UNCLEAR_ROOMS, "guest room", "lobby", "office", "terrace", "wardrobe"),
    object_blacklist=_UNCLEAR_OBJECTS,
)
"""The code's constants, and its two further templates."""

PRESETS: Mapping[str, QuestionRules] = MappingProxyType({"few_scenes": FEW_SCENES, "paper": PAPER, "code": CODE})


def find_rules(name: str) -> QuestionRules:
    """The preset of that name. Raises ``ConfigError`` naming the presets."""
    if name not in PRESETS:
        raise ConfigError(f"there are no question rules {name!r}", f"use one of: {', '.join(PRESETS)}")
    return PRESETS[name]
