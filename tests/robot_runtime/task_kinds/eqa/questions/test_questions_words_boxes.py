"""Names, footprints and relations that questions are made of."""

from __future__ import annotations

import math

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.scenes.scene import Room, SceneObject
from robot_runtime.task_kinds.eqa.questions.boxes import Box, gap_m, overlap
from robot_runtime.task_kinds.eqa.questions.names import category_name, is_are, plural, with_article
from robot_runtime.task_kinds.eqa.questions.relations import PREPOSITIONS, Relations
from robot_runtime.task_kinds.eqa.questions.rules import RelationRules

RELATIONS = Relations(RelationRules())


def box(x: float, y: float, bottom: float, size: tuple[float, float, float], yaw_deg: float = 0.0) -> Box:
    return Box.of(SceneObject("a", "a", (x, y, bottom + size[2] / 2), size, yaw_deg))


TABLE = box(0, 0, 0, (1.6, 0.8, 0.7))


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("AlarmClock", "alarm clock"),
        ("chest_of_drawers", "chest of drawers"),
        ("HousePlant", "plant"),
        ("living_room", "living room"),
        ("TV", "television"),
        (" kitchen-utensils ", "kitchen utensils"),
    ],
)
def test_categories_become_words(category, name):
    assert category_name(category, {"house plant": "plant", "tv": "television"}) == name


@pytest.mark.parametrize(
    ("name", "article", "plural_", "verb"),
    [
        ("mug", "a mug", "mugs", "is"),
        ("apple", "an apple", "apples", "is"),
        ("utensil holder", "a utensil holder", "utensil holders", "is"),
        ("xbox", "an xbox", "xboxes", "is"),
        ("bookshelf", "a bookshelf", "bookshelves", "is"),
        ("chest of drawers", "a chest of drawers", "chests of drawers", "is"),
        ("couch", "a couch", "couches", "is"),
        ("lobby", "a lobby", "lobbies", "is"),
        ("toy", "a toy", "toys", "is"),
        ("knife", "a knife", "knives", "is"),
        ("bus", "a bus", "buses", "is"),
        ("clothes", "clothes", "clothes", "are"),
        ("gym equipment", "gym equipment", "gym equipment", "is"),
    ],
)
def test_english(name, article, plural_, verb):
    assert (with_article(name), plural(name), is_are(name)) == (article, plural_, verb)


coordinate = st.floats(-3, 3)
edge = st.floats(0.05, 3)
boxes = st.builds(
    lambda x, y, bottom, size, yaw: box(x, y, bottom, size, yaw),
    coordinate,
    coordinate,
    st.floats(0, 2),
    st.tuples(edge, edge, edge),
    st.floats(-180, 180),
)


@given(boxes, boxes)
def test_footprints_agree_with_shapely(a, b):
    first, second = shapely.Polygon(a.corners), shapely.Polygon(b.corners)
    assert gap_m(a, b) == pytest.approx(first.distance(second), abs=1e-9)
    # Without a grid, shapely finds nothing shared where edges nearly coincide.
    shared = shapely.intersection(first, second, grid_size=1e-9).area / min(first.area, second.area)
    assert overlap(a, b) == pytest.approx(shared, abs=1e-6)
    corner = shapely.Point(a.corners[0])
    if second.exterior.distance(corner) > 1e-9:
        assert Room("b", "room", b.corners).contains(*a.corners[0]) == second.contains(corner)


@given(boxes, boxes)
def test_at_most_one_relation_holds_between_two_boxes(a, b):
    holds = [RELATIONS.on(a, b), RELATIONS.above(a, b), RELATIONS.next_to(a, b), RELATIONS.on(b, a)]
    assert sum(verdict is True for verdict in [*holds, RELATIONS.above(b, a)]) <= 1
    assert RELATIONS.next_to(a, b) == RELATIONS.next_to(b, a)


def test_a_thing_without_thickness_has_a_footprint():
    assert overlap(Box.of(SceneObject("p", "picture", (0, 0, 1), (0.5, 0.0, 0.5))), TABLE) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("thing", "on", "above", "next_to"),
    [
        (box(0, 0, 0.7, (0.1, 0.1, 0.1)), True, False, False),  # a mug on the table
        (box(0, 0, 0.74, (0.1, 0.1, 0.1)), True, False, False),  # measured a little too high
        (box(0, 0, 0.3, (0.1, 0.1, 0.1)), None, None, None),  # in a drawer of it, or on a seat within its box
        (box(0, 0, 1.8, (0.4, 0.4, 0.2)), False, True, False),  # a lamp
        (box(0, 0.45, 1.5, (0.6, 0.02, 0.5)), False, None, False),  # a picture on the wall behind it
        (box(0, 3, 1.5, (0.6, 0.02, 0.5)), False, False, False),  # on the wall opposite
        (box(0, 0.7, 0, (0.4, 0.4, 0.8)), False, False, True),  # a chair, 0.1 m away
        (box(0, 1.0, 0, (0.4, 0.4, 0.8)), False, False, None),  # 0.4 m away
        (box(0, 1.3, 0, (0.4, 0.4, 0.8)), False, False, False),  # 0.7 m away
        (box(0, 0.45, 0, (0.4, 0.4, 0.8)), None, None, None),  # pushed in halfway
        (box(0, 1.0, 0, (2, 1, 0.01)), False, False, None),  # a rug in front of it
        (box(0, 0, 0, (3, 2, 0.01)), False, False, False),  # a rug that it stands on
        (box(0, 0.4, 0.7, (0.4, 0.4, 0.1)), True, False, False),  # a tray, half over the edge
        (box(0, 0.5, 0.7, (0.4, 0.4, 0.1)), None, None, None),  # mostly over the edge
    ],
)
def test_relations_to_a_table(thing, on, above, next_to):
    verdicts = (RELATIONS.on(thing, TABLE), RELATIONS.above(thing, TABLE), RELATIONS.next_to(thing, TABLE))
    assert verdicts == (on, above, next_to)


def find(preposition: str, **others: Box) -> str | None:
    return RELATIONS.only(preposition, TABLE, list(others.items()))


MUG, BOWL = box(-0.4, 0, 0.7, (0.1, 0.1, 0.1)), box(0.4, 0, 0.7, (0.2, 0.2, 0.1))
LAMP, RUG, SECOND_RUG = box(0, 0, 1.8, (0.4, 0.4, 0.2)), box(0, 0, 0, (3, 2, 0.01)), box(0, 0, -0.01, (4, 3, 0.01))
INSIDE = box(0, 0, 0.2, (0.3, 0.3, 0.2))


def test_only_one_thing_is_an_answer():
    assert find("on", mug=MUG, lamp=LAMP, rug=RUG) == "mug"
    assert find("on", mug=MUG, bowl=BOWL) is None
    assert find("on", mug=MUG, inside=INSIDE) is None
    assert find("on") is None
    assert find("above", lamp=LAMP, rug=RUG) == "lamp"
    assert find("above", lamp=LAMP, mug=MUG) is None
    assert find("below", rug=RUG, mug=MUG) == "rug"


def test_what_carries_a_thing_is_below_it_and_what_carries_that_is_not():
    mug_on_table = RELATIONS.only("below", MUG, [("table", TABLE), ("rug", RUG), ("bowl", BOWL)])
    assert mug_on_table == "table"
    assert RELATIONS.only("below", LAMP, [("table", TABLE), ("rug", RUG)]) is None
    assert RELATIONS.only("below", LAMP, [("table", TABLE)]) == "table"


def test_the_order_of_things_does_not_matter():
    things = [("lamp", LAMP), ("rug", RUG), ("mug", MUG), ("chair", box(0, 0.7, 0, (0.4, 0.4, 0.8)))]
    for preposition in PREPOSITIONS:
        answers = {RELATIONS.only(preposition, TABLE, order) for order in (things, things[::-1])}
        assert len(answers) == 1


def test_relations_do_not_change_when_the_world_turns():
    for turn in (10, 45, 200):
        c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
        table = box(0, 0, 0, (1.6, 0.8, 0.7), turn)
        chair = box(-s * 0.7, c * 0.7, 0, (0.4, 0.4, 0.8), turn)
        assert RELATIONS.next_to(chair, table) is True
