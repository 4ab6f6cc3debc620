from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from small_campaign import plan

from robot_runtime.campaign.schedule import EpisodeName, schedule


def names(count: int) -> list[EpisodeName]:
    return [EpisodeName(n, str(n), f"scene{n % 3}", f"key{n}") for n in range(count)]


@given(st.integers(1, 40), st.integers(1, 3), st.integers(1, 12), st.integers(0, 1 << 40), st.booleans())
def test_every_episode_runs_once_per_repetition_and_each_policy_is_first_as_often(
    count: int, repetitions: int, block: int, seed: int, by_scene: bool
) -> None:
    made = plan(
        repetitions=repetitions, order={"seed": seed, "block": block, "by_scene": by_scene}, test={"largest": 1000}
    )
    starts = schedule(made, names(count))
    assert Counter(start.episode.number for start in starts) == dict.fromkeys(range(count), repetitions)
    assert [start.number for start in starts] == list(range(len(starts)))
    assert all(sorted(start.policies) == ["P1", "P2"] for start in starts)
    for repetition in range(repetitions):
        one = starts[repetition * count : (repetition + 1) * count]
        for first in range(0, count, block):
            part = one[first : first + block]
            leads = sum(start.policies[0] == "P1" for start in part)
            assert abs(2 * leads - len(part)) <= 1
        if by_scene:
            changes = sum(a.episode.scene != b.episode.scene for a, b in pairwise(one))
            assert changes == len({start.episode.scene for start in one}) - 1


def test_the_order_is_the_same_in_every_version() -> None:
    starts = schedule(plan(), names(6))
    assert [(start.episode.number, start.policies[0], start.seed) for start in starts] == [
        (5, "P1", 1480204175),
        (3, "P1", 1391563133),
        (4, "P2", 1118381003),
        (2, "P2", 798414485),
        (0, "P1", 861467360),
        (1, "P2", 1876118448),
    ]


def test_the_order_depends_on_the_seed_and_has_the_largest_number_of_starts() -> None:
    orders = {
        tuple(start.episode.number for start in schedule(plan(order={"seed": seed}, test={"largest": 5}), names(9)))
        for seed in range(20)
    }
    assert len(orders) > 15
    assert {len(order) for order in orders} == {5}


def test_some_of_many_policies_are_drawn_for_each_start() -> None:
    policies = {f"P{n}": {"spec": "random"} for n in range(5)}
    starts = schedule(plan(policies=policies, order={"seed": 1, "policies_per_start": 2}), names(30))
    assert all(len(set(start.policies)) == 2 for start in starts)
    assert len(Counter(policy for start in starts for policy in start.policies)) == 5
