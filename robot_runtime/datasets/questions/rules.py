"""Which questions may be asked: every constant of the question engine, as data.

Das et al. 2018 (EmbodiedQA), section 3.2 and appendix A, and the authors' code (facebookresearch/EmbodiedQA,
``data/question-gen``) differ; :data:`PAPER` and :data:`CODE` state each. What they say about the same thing:

====================  ==========================================  ==========================================
constant              paper                                       code
====================  ==========================================  ==========================================
``max_count``         "greater than 5" are dropped (appendix A);  ``count <= 5``
                      section 3.2 says "(>= 5)" are
``max_room_count``    5, as above                                 ``count < 5``
distance              gap of at least 2 m                         near <= 0.2 m and far >= 2.0 m
office, lobby         may be asked about (figure 2b)              blacklisted
tiny objects          a list                                      the list, and boxes under 0.0005 m3
relations             no numbers                                  0.05 m, between the boxes' nearest corners
``unique(objects)``   among the objects of all selected rooms     the same
====================  ==========================================  ==========================================

The presets hold constants, not the code's slips: its distance question asks whether OBJ1 is closer to OBJ2 than to
OBJ3, but measures both distances from OBJ2, so that "no" can be wrong; here both are measured from OBJ1. Its questions
with "or" and with "farther" are not among the nine templates of the paper and are not asked here.

The published blacklists are words of SUNCG's vocabulary. What carries over is their rule: nothing tiny, vague,
transparent, or part of the building. The lists below apply it to this project's scenes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from robot_runtime.common import config
from robot_runtime.errors import ConfigError

NINE_TEMPLATES = (
    "location",
    "color",
    "color_room",
    "preposition",
    "existence",
    "logical",
    "count",
    "room_count",
    "distance",
)
V1_TEMPLATES = NINE_TEMPLATES[:4]
"""EQA v1, which the paper's experiments use: the types with one object to go to."""
FURTHER_TEMPLATES = ("relation", "room_object_count")
"""Of the published code: ``relate``, a preposition without a room, and in how many rooms there is such an object."""


@dataclass(frozen=True)
class RelationRules:
    """When boxes stand in a relation; see :mod:`robot_runtime.datasets.questions.relations`.

    Attributes:
        touch_m: heights that differ by no more than this are equal.
        next_to_m: footprints apart by no more than this are next to each other; up to twice this it is unclear.
        min_overlap: of the smaller footprint, which one thing must share with another to be on, above or below it.
        max_stray: a smaller part than this counts as none; between the two it is unclear.
    """

    touch_m: float = 0.05
    next_to_m: float = 0.3
    min_overlap: float = 0.5
    max_stray: float = 0.1

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not (self.touch_m > 0 and self.next_to_m > 0 and 0 <= self.max_stray < self.min_overlap <= 1):
            raise ValueError(f"relations need positive distances and 0 <= max_stray < min_overlap <= 1, got {self}")


@dataclass(frozen=True)
class DistanceRules:
    """Which two distances are far enough apart to ask which is smaller.

    Attributes:
        gap_m: by how much they differ at least. near_m: at most the smaller one. far_m: at least the larger one.
    """

    gap_m: float = 2.0
    near_m: float | None = None
    far_m: float = 0.0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if self.gap_m <= 0 and (self.near_m is None or self.near_m >= self.far_m):
            raise ValueError(f"equal distances cannot be compared: give a gap_m, or near_m below far_m, got {self}")

    def clear(self, smaller_m: float, larger_m: float) -> bool:
        """Whether nobody would doubt which of the two is smaller."""
        near = self.near_m is None or smaller_m <= self.near_m
        return near and larger_m >= self.far_m and larger_m - smaller_m >= self.gap_m


@dataclass(frozen=True)
class QuestionRules:
    """What may be asked.

    Attributes:
        templates: of :data:`robot_runtime.datasets.questions.programs.TEMPLATES`.
        min_entropy: of a question's answers over all scenes, divided by that of as many equally frequent answers
            (natural range 0..1; 0 for a single answer). A question below it can be answered without looking.
        min_environments: scenes that a question must occur in, for its entropy to mean something.
        max_count, max_room_count: the largest answers; more is tedious to count.
        unique_in: what ``unique(objects)`` looks at after rooms were selected: each ``room``, which is what "the OBJ in
            the ROOM" needs, or the whole ``selection``, as the paper's text and code have it.
        min_volume_m3: smaller boxes are not asked about.
        seen_only: ask only about objects that have view points, so that the robot can see the answer.
        max_per_room: of logical and of distance questions, whose number grows with the square and cube of the number of
            objects; which of them is up to the seed. None: all.
        collapse: names that mean the same or one within the other, as (name, what to call it).
        confusable: groups of names of which one person calls "table" what another calls "desk". Neither "no" nor a
            number is a safe answer about one of them while another is there.
        queryable_rooms, queryable_objects: the names that may be asked about; None: any.
        room_blacklist: names that do not tell which room is meant.
        object_blacklist: per template, names not to be asked about; ``all`` holds for each.
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

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not 0 <= self.min_entropy <= 1:
            raise ValueError(f"min_entropy is normalized: 0 to 1, got {self.min_entropy}")
        for name in ("min_environments", "max_count", "max_room_count"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.max_per_room is not None and self.max_per_room < 0:
            raise ValueError(f"max_per_room cannot be negative, got {self.max_per_room}")
        if self.min_volume_m3 < 0:
            raise ValueError(f"min_volume_m3 cannot be negative, got {self.min_volume_m3}")

    def confused_with(self, name: str) -> frozenset[str]:
        """Other names for what somebody might call ``name``."""
        groups = (group for group in self.confusable if name in group)
        return frozenset(other for group in groups for other in group) - {name}

    def blacklisted(self, template: str) -> frozenset[str]:
        """The names that a template must not ask about."""
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
_UNCLEAR_ROOMS = (
    "aeration",
    "boiler room",
    "entryway",
    "freight elevator",
    "hall",
    "hallway",
    "loggia",
    "other",
    "passenger elevator",
    "room",
    "storage",
)
_UNCLEAR_OBJECTS = {
    "all": (
        "board",
        "column",
        "container",
        "decoration",
        "door",
        "glass",
        "household appliance",
        "kitchen cabinet",
        "object",
        "person",
        "pet",
        "range hood",
        "shelving",
        "stand",
        "stairs",
        "switch",
        "toy",
        "window",
    ),
    # A frame, what it frames and what it mirrors have different colors; so have leaves and pot, shade and foot.
    "color": ("clothes", "curtain", "mirror", "picture", "plant", "lamp", "rug", "kitchen utensils"),
}

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
"""For the scenes at hand, down to a single one: no statistics over scenes, but only questions that the robot can see
the answer of, and not more combinations than a person would read."""

PAPER = QuestionRules(
    unique_in="selection",
    collapse=tuple(dict([*_ONE_NAME, *_EQA_NAMES, ("dresser", "dresser")]).items()),
    queryable_rooms=(
        "balcony",
        "bathroom",
        "bedroom",
        "dining room",
        "elevator",
        "garage",
        "gym",
        "kitchen",
        "living room",
        "lobby",
        "office",
        "patio",
    ),
    queryable_objects=_EQA_OBJECTS,
    room_blacklist=_UNCLEAR_ROOMS,
    object_blacklist=_UNCLEAR_OBJECTS,
)
"""The paper's constants and its names: the 12 rooms and 50 objects of figure 2."""

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
"""The code's constants, and the two further templates that it generates."""

PRESETS: Mapping[str, QuestionRules] = MappingProxyType({"few_scenes": FEW_SCENES, "paper": PAPER, "code": CODE})


def find_rules(name: str) -> QuestionRules:
    """The preset of that name. Raises ``ConfigError`` naming those that there are."""
    if name not in PRESETS:
        raise ConfigError(f"there are no question rules {name!r}", f"use one of: {', '.join(PRESETS)}")
    return PRESETS[name]
