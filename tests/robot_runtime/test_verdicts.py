"""Verdicts on a run: the one of several that counts, and success by them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scoring.statistics.agreement import agreements
from robot_runtime.verdicts import (
    EpisodeVerdict,
    RunIdentity,
    SuccessViews,
    Verdict,
    Verdicts,
    success_by_person,
    success_views,
)

MUG_AT_HOME = {"mug_1": ObjectPose((4.6, 2.2, 0.76))}


def said(who: str, judgment: EpisodeVerdict | None = None, helped: bool | None = None) -> Verdict:
    return Verdict(who, "2026-11-23T10:00:00Z", judgment=judgment, intervention=helped)


@pytest.mark.parametrize(
    ("verdicts", "by_metrics", "strict", "lenient"),
    [
        ([], True, True, True),
        ([said("Ada", helped=True)], True, False, True),
        ([said("Ada", helped=True), said("Bob", helped=False)], True, True, True),
        ([said("Ada", "success"), said("Bob", "fail")], False, False, True),
        ([said("Ada", "fail"), said("Ada", "success")], False, True, True),
        ([said("Ada", "fail"), said("Bob", "fail")], True, False, False),
        ([said("Ada", "success", helped=True)], False, False, True),
        ([said("Ada", "fail"), said("Ada", "invalid")], True, True, True),
    ],
)
def test_views(verdicts: list[Verdict], by_metrics: bool, strict: bool, lenient: bool) -> None:
    assert success_views(verdicts, by_metrics) == SuccessViews(strict, lenient)


def test_agreement_counts_the_last_verdict_of_each_and_each_pair_of_people() -> None:
    both = [said("Ada", "fail"), said("Bob", "success"), said("Ada", "success")]
    assert success_by_person(both) == {"Ada": True, "Bob": True}
    episodes = [both, [said("Bob", "fail"), said("Ada", "success")], [said("Ada", "fail")], []]
    found = agreements(map(success_by_person, episodes))
    assert found.keys() == {("Ada", "Bob")}
    assert (found["Ada", "Bob"].episodes, found["Ada", "Bob"].disagreements) == (2, 1)


def test_the_last_verdict_on_each_object_counts() -> None:
    moved = {"mug_1": ObjectPose((1.0, 1.0, 0.0))}
    first = (Verdict("a", "t", objects=MUG_AT_HOME | {"bowl": ObjectPose((0.0, 0.0, 0.0))}),)
    verdicts = Verdicts(1, RunIdentity("e", 0, 0, ""), (*first, Verdict("b", "t", objects=moved)))
    assert verdicts.objects == moved | {"bowl": ObjectPose((0.0, 0.0, 0.0))}


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4))
def test_a_rotation_has_length_one(values: list[float]) -> None:
    w, x, y, z = values
    objects = {"mug_1": ObjectPose((0.0, 0.0, 0.0), (w, x, y, z))}
    if abs(math.hypot(w, x, y, z) - 1) < 9e-4:
        assert Verdict("a", "t", objects=objects).objects == objects
    elif abs(math.hypot(w, x, y, z) - 1) > 2e-3:
        with pytest.raises(ValueError, match="of length 1"):
            Verdict("a", "t", objects=objects)
