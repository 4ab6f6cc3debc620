from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_campaign import WrittenCampaign, facts, plan

from robot_runtime.campaign.outcomes import answer, closing_lines, sentence, values
from robot_runtime.campaign.state import State, mismatch
from robot_runtime.errors import ConfigError


@pytest.fixture
def campaign(tmp_path: Path) -> WrittenCampaign:
    return WrittenCampaign(tmp_path, plan())


def test_policies_alternate_on_each_start_until_all_have_run(campaign: WrittenCampaign) -> None:
    names = [campaign.run_next(facts()) for _ in range(12)]
    assert campaign.state.next_run(0) is None
    assert sorted(names) == sorted(f"{start:04d}-{policy}-1" for start in range(6) for policy in ("P1", "P2"))
    assert [number for number, _ in campaign.state.finished] == list(range(6))


def test_a_ledger_that_is_read_again_gives_the_same_state(campaign: WrittenCampaign) -> None:
    for found in (facts(), facts(kind="device_fault"), facts(0.0), facts(0.0, kind="help")):
        campaign.run_next(found)
    again = State(campaign.plan, campaign.ledger.entries)
    for view in ("strict", "lenient"):
        assert values(again, view) == values(campaign.state, view)  # type: ignore[arg-type]
    assert again.next_run(0) == campaign.state.next_run(0)


def test_the_end_says_what_the_other_count_gives_who_disagrees_and_who_took_over(campaign: WrittenCampaign) -> None:
    first = campaign.run_next(facts(kind="takeover", taken_over=(3, 4)))
    second = campaign.run_next(facts())
    for by, success in (("ada", True), ("ben", False)):
        said = {"by": by, "success": success, "invalid": False, "note": "", "file": "", "sha256": ""}
        campaign.append("verdict", attempt=second, **said)
    result = answer(campaign.plan, values(campaign.state, "strict"))
    lines = "\n".join(closing_lines(campaign.state, result))
    assert "strict count" in lines
    assert "by the lenient count: success P1 1.000, P2 1.000" in lines
    assert f"the judges disagree on {second}" in lines
    assert f"a person took over in {first}" in lines


@pytest.mark.parametrize("kind", ["device_fault", "interrupted", "killed", "start", "damaged", "link_lost"])
def test_a_run_that_says_nothing_about_the_policy_is_repeated(campaign: WrittenCampaign, kind: Any) -> None:
    first = campaign.run_next(facts(kind=kind))
    second = campaign.run_next(facts())
    assert second == first[:-1] + "2"


def test_a_start_is_given_up_after_its_tries_and_the_next_one_runs(campaign: WrittenCampaign) -> None:
    for _ in range(3):
        campaign.run_next(facts(kind="device_fault"))
    assert "no run that counts in 3" in campaign.state.progress(0).given_up
    assert campaign.run_next(facts()).startswith("0001")


def test_crashes_of_an_older_campaign_are_no_tries_of_the_policy(campaign: WrittenCampaign) -> None:
    for _ in range(9):
        campaign.run_next(facts(kind="killed"), recovered=True)
    assert not campaign.state.progress(0).given_up


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"map": "n"}, "map"),
        ({"battery": 0.4}, "charges differ by 50 %"),
        ({"light": 0.2}, "200 % in brightness"),
        ({"x_m": 1.2, "y_m": 1.0}, "20 cm apart"),
    ],
)
def test_a_pair_under_other_conditions_is_repeated_whole(
    campaign: WrittenCampaign, other: dict[str, Any], words: str
) -> None:
    conditions = {"battery": 0.9, "light": 0.6, "x_m": 1.0, "y_m": 1.0}
    campaign.run_next(facts(**conditions))
    campaign.run_next(facts(**{**conditions, **other}))
    assert words in campaign.state.progress(0).repeats[0]
    again = {campaign.run_next(facts(**conditions)), campaign.run_next(facts(**conditions))}
    assert again == {"0000-P1-2", "0000-P2-2"}
    assert campaign.state.progress(0).done


def test_a_pair_that_never_fits_is_given_up(campaign: WrittenCampaign) -> None:
    for _ in range(2):
        campaign.run_next(facts(light=0.9))
        campaign.run_next(facts(light=0.1))
    assert "2 times" in campaign.state.progress(0).given_up


def test_what_a_log_does_not_tell_is_not_compared() -> None:
    assert mismatch(plan(), [facts(battery=0.9, light=0.1), facts()]) == ""


def run_pair(campaign: WrittenCampaign, p1: Any, p2: Any) -> dict[str, str]:
    """Both runs of the next start by policy; their names."""
    names = {}
    for _ in range(2):
        following = campaign.state.next_run(0)
        assert following is not None
        names[following[1]] = campaign.run_next({"P1": p1, "P2": p2}[following[1]])
    return names


def test_help_fails_the_strict_result_and_not_the_lenient_one(campaign: WrittenCampaign) -> None:
    names = run_pair(campaign, facts(), facts())
    campaign.append("event", attempt=names["P2"], what="help", by="Ada")
    assert values(campaign.state, "strict") == [{"P1": 1.0, "P2": 0.0}]
    assert values(campaign.state, "lenient") == [{"P1": 1.0, "P2": 1.0}]


def test_an_emergency_stop_fails_strictly_although_the_run_is_repeated(campaign: WrittenCampaign) -> None:
    following = campaign.state.next_run(0)
    assert following is not None
    stopped = following[1]
    campaign.run_next(facts(0.0, kind="e_stop"))
    run_pair_rest = [campaign.run_next(facts()), campaign.run_next(facts())]
    assert len(run_pair_rest) == 2
    assert values(campaign.state, "strict")[0][stopped] == 0.0
    assert values(campaign.state, "lenient")[0][stopped] == 1.0


def test_two_judges_that_disagree_are_strictly_a_failure_and_leniently_a_success(tmp_path: Path) -> None:
    campaign = WrittenCampaign(tmp_path, plan(judging={"judges": 2}))
    names = run_pair(campaign, facts(), facts(0.0))
    assert values(campaign.state, "strict") == []
    for attempt in names.values():
        for by, success in (("Ada", True), ("Ben", attempt == names["P2"])):
            campaign.append("verdict", attempt=attempt, by=by, success=success, invalid=False)
    assert values(campaign.state, "strict") == [{"P1": 0.0, "P2": 1.0}]
    assert values(campaign.state, "lenient") == [{"P1": 1.0, "P2": 1.0}]


def test_a_judges_success_has_the_spl_of_the_path(tmp_path: Path) -> None:
    campaign = WrittenCampaign(tmp_path, plan(judging={"judges": 1}, test={"largest": 9, "metric": "spl"}))
    for attempt in run_pair(campaign, facts(0.0), facts()).values():
        campaign.append("verdict", attempt=attempt, by="Ada", success=True, invalid=False)
    assert values(campaign.state, "strict") == [{"P1": 0.8, "P2": 0.8}]


def test_an_invalid_run_is_repeated(campaign: WrittenCampaign) -> None:
    names = run_pair(campaign, facts(), facts())
    campaign.append("verdict", attempt=names["P1"], by="Ada", success=None, invalid=True)
    assert campaign.run_next(facts()) == "0000-P1-2"


def test_the_answer_comes_when_the_pairs_tell_and_not_before(campaign: WrittenCampaign) -> None:
    better = [{"P1": 0.0, "P2": 1.0}] * 6
    assert answer(campaign.plan, better).decision == "continue"
    found = answer(campaign.plan, better + better)
    assert (found.decision, found.pairs) == ("P2", 7)
    assert "P2 is better" in sentence(campaign.plan, found)


def test_the_answer_at_the_largest_number_is_that_there_is_none() -> None:
    equal = [{"P1": 1.0, "P2": 1.0}] * 5
    assert answer(plan(test={"largest": 5}), equal).decision == "undecided"


def test_two_robots_never_share_a_start(tmp_path: Path) -> None:
    campaign = WrittenCampaign(tmp_path, plan(robots=[{"robot": "fake"}, {"robot": "fake"}]))
    campaign.run_next(facts(), robot=0)
    campaign.run_next(facts(), robot=1)
    assert {attempt.start: attempt.robot for attempt in campaign.state.attempts.values()} == {0: 0, 1: 1}
    campaign.run_next(facts(), robot=1)
    assert [number for number, _ in campaign.state.finished] == [1]


def test_a_line_that_names_no_attempt_is_refused(campaign: WrittenCampaign) -> None:
    with pytest.raises(ConfigError, match="malformed"):
        campaign.append("event", attempt="9999-P1-1", what="help", by="Ada")


def test_a_run_takes_what_its_robot_had_before_the_way_to_the_start(tmp_path: Path) -> None:
    campaign = WrittenCampaign(tmp_path, plan(robots=[{"robot": "fake"}, {"robot": "fake"}]))
    campaign.run_next(facts(battery=0.9, battery_end=0.8))
    campaign.run_next(facts())
    campaign.run_next(facts(battery=0.8, battery_end=0.75), robot=1)
    campaign.run_next(facts(battery=0.7, battery_end=0.65))
    campaign.run_next(facts(battery=0.95, battery_end=0.9))
    assert campaign.state.consumptions == pytest.approx([0.1, 0.05, 0.15, 0.05])
