"""Safety topics as levels: every bit pattern, events with both edges, pulses, and what counts as proof of life."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.ros.guard.safety_levels import (
    ALL,
    BOTH_WHEELS,
    Levels,
    LevelTracker,
    SafetySensor,
    create_bumper_levels,
    create_diagnosed_levels,
    kobuki_levels,
)
from drivers.ros.guard.safety_sources import SAFETY_SOURCES, tracker_of
from drivers.ros.options import Topics
from drivers.ros.topics import TOPICS, topic_names
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.hal import Zone

S = NS_PER_S


def core(bumper: int = 0, cliff: int = 0, wheel_drop: int = 0) -> SimpleNamespace:
    return SimpleNamespace(bumper=bumper, cliff=cliff, wheel_drop=wheel_drop)


@pytest.mark.parametrize(
    ("bits", "zone"), [(0, Zone.NONE), (1, Zone.RIGHT), (2, Zone.CENTER), (4, Zone.LEFT), (7, ALL)]
)
def test_kobuki_bits_count_from_the_right(bits: int, zone: Zone) -> None:
    assert kobuki_levels(core(bumper=bits)) == Levels(bumper=zone)
    assert kobuki_levels(core(cliff=bits)) == Levels(cliff=zone)


def test_kobuki_wheels() -> None:
    assert [kobuki_levels(core(wheel_drop=bits)).wheel_drop for bits in range(4)] == [
        Zone.NONE,
        Zone.RIGHT,
        Zone.LEFT,
        BOTH_WHEELS,
    ]


@given(st.integers(0, 255))
def test_no_byte_reads_as_free_but_zero(byte: int) -> None:
    levels = kobuki_levels(core(byte, byte, byte))
    assert bool(levels.bumper) is bool(levels.cliff) is bool(levels.wheel_drop) is (byte > 0)


@pytest.mark.parametrize(
    ("left", "right", "zone"),
    [(False, False, Zone.NONE), (True, False, Zone.LEFT), (False, True, Zone.RIGHT), (True, True, Zone.CENTER)],
)
def test_create_switches(left: bool, right: bool, zone: Zone) -> None:
    assert create_bumper_levels(SimpleNamespace(is_left_pressed=left, is_right_pressed=right)) == Levels(bumper=zone)


def test_nothing_heard_is_no_feedback() -> None:
    tracker = LevelTracker(("/core",), ("/events",))
    assert tracker.feedback(0) is None
    tracker.event(SafetySensor.BUMPER, 1, 1)
    assert tracker.feedback(S) is None
    assert tracker.source == "none"


def test_levels_are_stamped_on_arrival_and_replace_each_other() -> None:
    tracker = LevelTracker(("/core",), ("/events",))
    tracker.levels(Levels(bumper=Zone.LEFT), 5, "/core")
    tracker.levels(Levels(cliff=Zone.RIGHT), 6, "/core")
    feedback = tracker.feedback(S)
    assert feedback is not None
    assert (feedback.stamp_ns, feedback.bumper, feedback.cliff) == (6, Zone.NONE, Zone.RIGHT)


def test_levels_win_over_events_and_over_other_signs_of_life() -> None:
    tracker = LevelTracker(("/core",), ("/events",))
    tracker.levels(Levels(), 0, "/core")
    tracker.event(SafetySensor.BUMPER, 1, 1)
    for tenth in range(100):
        tracker.alive(tenth * S // 10)
    feedback = tracker.feedback(10 * S)
    assert feedback is not None
    assert feedback.bumper is Zone.NONE
    assert feedback.stamp_ns == 0, "a base whose levels stopped is silent, whatever else it sends"
    assert tracker.source == "levels"


def test_events_are_believed_once_the_base_lives_without_levels() -> None:
    tracker = LevelTracker(("/core",), ("/events",))
    tracker.event(SafetySensor.BUMPER, 0, 1)
    tracker.alive(0)
    tracker.alive(S)
    assert tracker.feedback(S) is None
    tracker.alive(2 * S)
    feedback = tracker.feedback(2 * S)
    assert feedback is not None
    assert (feedback.stamp_ns, feedback.bumper) == (2 * S, Zone.LEFT)
    assert tracker.source == "events"


def test_released_is_a_release_of_that_bumper_alone() -> None:
    tracker = living()
    tracker.event(SafetySensor.BUMPER, 0, 1)
    tracker.event(SafetySensor.BUMPER, 2, 1)
    assert bumper(tracker) == Zone.LEFT | Zone.RIGHT
    tracker.event(SafetySensor.BUMPER, 0, 0)
    assert bumper(tracker) == Zone.RIGHT
    tracker.event(SafetySensor.BUMPER, 2, 0)
    tracker.event(SafetySensor.BUMPER, 2, 0)
    assert bumper(tracker) == Zone.NONE


@given(st.lists(st.tuples(st.sampled_from(SafetySensor), st.integers(0, 255), st.integers(0, 255))))
def test_events_amount_to_the_last_edge_of_each_sensor(edges: list[tuple[SafetySensor, int, int]]) -> None:
    tracker = living()
    last: dict[tuple[SafetySensor, int], int] = {}
    for kind, number, state in edges:
        tracker.event(kind, number, state)
        last[kind, number] = state
    feedback = tracker.feedback(2 * S)
    assert feedback is not None
    for kind in SafetySensor:
        pressed = any(state for (of, _), state in last.items() if of is kind)
        assert bool(getattr(feedback, kind.value)) is pressed


SAFE = {"Cliff": "False", "Wheeldrop": "False"}


def diagnosed(name: str = "ca_driver: Safety Status", **values: str) -> SimpleNamespace:
    pairs = [SimpleNamespace(key=key, value=value) for key, value in values.items()]
    other = SimpleNamespace(name="ca_driver: Base Mode", values=[])
    return SimpleNamespace(status=[other, SimpleNamespace(name=name, values=pairs)])


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (SAFE, Levels()),
        (SAFE | {"Cliff": "True"}, Levels(cliff=ALL)),
        (SAFE | {"Wheeldrop": "True"}, Levels(wheel_drop=BOTH_WHEELS)),
        (SAFE | {"Cliff": "1"}, Levels(cliff=ALL)),  # an unknown text is no floor
    ],
)
def test_a_create_reports_cliffs_in_its_diagnoses(values: dict[str, str], levels: Levels) -> None:
    assert create_diagnosed_levels(diagnosed(**values)) == levels
    assert create_diagnosed_levels(diagnosed("create_driver: Safety Status", **values)) == levels


def test_a_starting_create_has_not_diagnosed_yet() -> None:
    assert create_diagnosed_levels(diagnosed()) is None
    assert create_diagnosed_levels(diagnosed("ca_driver: Serial Status", **SAFE)) is None


def create_tracker() -> LevelTracker:
    return tracker_of("pyrobot-create", Topics(**topic_names("pyrobot-create", "")))


def test_a_create_without_its_diagnoses_gives_no_feedback() -> None:
    tracker = create_tracker()
    tracker.levels(Levels(), 0, "/bumper")
    for tenth in range(100):
        tracker.alive(tenth * S // 10)  # odometry replaces no cliff sensor
    assert tracker.feedback(0) is None
    assert tracker.lacking(0, 0.35) == "/diagnostics: no message yet"
    tracker.levels(Levels(cliff=ALL), 0, "/diagnostics")
    tracker.levels(Levels(bumper=Zone.LEFT), S, "/bumper")
    feedback = tracker.feedback(S)
    assert feedback is not None
    assert (feedback.stamp_ns, feedback.bumper, feedback.cliff) == (0, Zone.LEFT, ALL), "as old as its oldest topic"
    assert tracker.lacking(S, 0.35) == "/diagnostics: newest 1.0 s old"


@pytest.mark.parametrize(("field", "zone"), [("cliff", Zone.RIGHT), ("wheel_drop", Zone.RIGHT)])
def test_one_kobuki_message_with_a_cliff_or_a_wheel_drop_is_filtered(field: str, zone: Zone) -> None:
    names = topic_names("pyrobot-kobuki", "")
    tracker, [source, *_] = tracker_of("pyrobot-kobuki", Topics(**names)), SAFETY_SOURCES["pyrobot-kobuki"]
    seen = []
    for number, bits in enumerate([1, 0, 0, 1, 1, 0, 1]):
        source.take(tracker, names["core"], core(**{field: bits}), number)
        feedback = tracker.feedback(number)
        assert feedback is not None
        seen.append(getattr(feedback, field))
    assert seen == [Zone.NONE, Zone.NONE, Zone.NONE, Zone.NONE, zone, Zone.NONE, Zone.NONE]


def test_a_contact_counts_at_once() -> None:
    names = topic_names("pyrobot-kobuki", "")
    tracker, [source, *_] = tracker_of("pyrobot-kobuki", Topics(**names)), SAFETY_SOURCES["pyrobot-kobuki"]
    source.take(tracker, names["core"], core(bumper=4), 0)
    feedback = tracker.feedback(0)
    assert feedback is not None
    assert feedback.bumper is Zone.LEFT


def test_a_quiet_topic_without_a_publisher_gives_no_feedback() -> None:
    tracker = create_tracker()
    for topic in ("/bumper", "/diagnostics"):
        tracker.levels(Levels(), 0, topic)
    assert tracker.quiet_topics == ("/wheeldrop",)
    tracker.unpublished(["/wheeldrop"])
    assert tracker.feedback(0) is None
    assert tracker.lacking(0, 0.35) == "/wheeldrop has no publisher"
    tracker.unpublished([])
    assert tracker.feedback(0) is not None


def test_events_without_a_publisher_give_no_feedback() -> None:
    tracker = living()
    tracker.unpublished(tracker.quiet_topics)
    assert tracker.feedback(2 * S) is None
    assert tracker.lacking(2 * S, 0.1) == "/events has no publisher"


@pytest.mark.parametrize("family", TOPICS)
def test_each_safety_source_is_a_topic_of_its_family(family: str) -> None:
    fields = {source.field for source in SAFETY_SOURCES[family]}
    assert fields <= set(TOPICS[family])
    assert set(TOPICS[family]) <= set(Topics.__dataclass_fields__)
    assert all(topic.origin and topic.kinds for topic in TOPICS[family].values())


def test_a_pulse_holds_a_while() -> None:
    tracker = LevelTracker(("/core",), ("/events",))
    tracker.levels(Levels(), 0, "/core")
    tracker.pulse(SafetySensor.WHEEL_DROP, 0)
    held, over = tracker.feedback(S // 5), tracker.feedback(S // 4)
    assert held is not None
    assert over is not None
    assert held.wheel_drop == BOTH_WHEELS
    assert over.wheel_drop is Zone.NONE


def living() -> LevelTracker:
    tracker = LevelTracker(("/core",), ("/events",))
    tracker.alive(0)
    tracker.alive(2 * S)
    return tracker


def bumper(tracker: LevelTracker) -> Zone:
    feedback = tracker.feedback(2 * S)
    assert feedback is not None
    return feedback.bumper
