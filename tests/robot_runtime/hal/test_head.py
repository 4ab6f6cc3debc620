"""Detection of a head at rest."""

from __future__ import annotations

from robot_runtime.hal.head import Stillness

MS = 1_000_000


def test_a_head_rests_once_it_has_stayed_at_its_goal() -> None:
    stillness = Stillness(tolerance_rad=0.01, settle_s=0.2)
    stillness.set_goal((0.0, 0.5), 0)
    rests = {}
    for ms in range(20, 1000, 20):
        stillness.sample((0.0, min(0.5, ms / 1000)), ms * MS)
        rests[ms] = stillness.still
    assert not rests[480]
    assert not rests[680]
    assert rests[700], "0.49 was reached at 0.49 s, and settling takes 0.2 s"


def test_a_new_goal_is_motion_at_once_and_the_same_goal_is_none() -> None:
    stillness = Stillness(0.01, 0.1)
    stillness.set_goal((0.0, 0.0), 0)
    for ms in range(20, 300, 20):
        stillness.sample((0.0, 0.0), ms * MS)
    stillness.set_goal((0.0, 0.0), 300 * MS)
    assert stillness.still
    stillness.set_goal((0.1, 0.0), 300 * MS)
    assert not stillness.still


def test_samples_from_before_a_goal_do_not_count_for_it() -> None:
    stillness = Stillness(0.01, 0.1)
    stillness.set_goal((0.0, 0.0), 500 * MS)
    for ms in range(0, 500, 20):
        stillness.sample((0.0, 0.0), ms * MS)
    assert not stillness.still


def test_without_a_goal_rest_is_not_moving() -> None:
    stillness = Stillness(0.01, 0.1)
    for ms in range(0, 300, 20):
        stillness.sample((0.3, 0.001 * (ms % 40)), ms * MS)
    assert not stillness.still
    for ms in range(300, 500, 20):
        stillness.sample((0.3, 0.0), ms * MS)
    assert stillness.still
