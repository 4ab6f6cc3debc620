from __future__ import annotations

import pytest
from small_campaign import facts

from robot_runtime.campaign.charging import charged, consumptions, expected, must_charge
from robot_runtime.campaign.plan import Battery

RULES = Battery(least=0.2, resume=0.8, first_run=0.1)


def test_a_robot_begins_if_its_charge_lasts_for_all_runs_of_the_start() -> None:
    assert not must_charge(0.41, 2, [], RULES)
    assert must_charge(0.39, 2, [], RULES)
    assert not must_charge(0.39, 1, [], RULES)
    assert not must_charge(0.8, 9, [0.5], RULES)  # it was charged, and would ask for ever


def test_the_expectation_follows_what_runs_took() -> None:
    runs = [facts(battery=0.9, battery_end=0.85), facts(), facts(battery=0.95, battery_end=0.9)]
    taken = consumptions([(0, one) for one in runs] + [(1, facts(battery=0.8, battery_end=0.75))])
    assert taken == pytest.approx([0.05, 0.05, 0.05])
    way = [(0, facts(battery=0.9, battery_end=0.8)), (0, facts(battery=0.7, battery_end=0.65))]
    assert consumptions(way) == pytest.approx([0.1, 0.15])
    assert expected(taken, RULES) == pytest.approx(0.05)
    assert expected([0.05, 0.15], RULES) > 0.15


def test_a_robot_that_does_not_know_its_charge_is_never_paused() -> None:
    assert not must_charge(None, 2, [0.5], RULES)
    assert charged(None, RULES)


def test_a_paused_robot_goes_on_at_its_charge() -> None:
    assert not charged(0.79, RULES)
    assert charged(0.8, RULES)
