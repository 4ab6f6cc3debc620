"""Agents and schemes of policies that another package offers, and the kinds that a policy solves."""

from __future__ import annotations

from pathlib import Path

import outside_packages
import pytest
from box_world import make_task
from raising import raises_naming

from robot_runtime.errors import PolicyError, PolicyMismatch
from robot_runtime.policies import AGENTS, check_source, load_policy
from robot_runtime.policies.baselines.blind import ForwardOnly, RandomActions
from robot_runtime.policies.openers import OPENERS, opener_of
from robot_runtime.policy import PolicySource

OFFERED = """
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.blind import ForwardOnly
from robot_runtime.policies.openers import PolicyOpener

class Opener(PolicyOpener):
    def open(self, spec, isolation, arguments):
        policy = ForwardOnly(**arguments)
        policy.name = spec
        return policy

    def check(self, spec):
        if not spec.startswith("navdp://"):
            raise PolicyError(f"{spec} has no host", "write navdp://HOST:PORT")

OPENER = Opener()
"""


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = "policies_of_tests"
    offers = {OPENERS.group: {"navdp": f"{package}:OPENER"}, AGENTS.group: {"ahead": f"{package}:ForwardOnly"}}
    outside_packages.install(tmp_path, package, offers, OFFERED)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("offered")
def test_another_package_adds_a_scheme() -> None:
    assert load_policy("navdp://gpu:8888", stop_distance_m=0.3).name == "navdp://gpu:8888"
    check_source(PolicySource("navdp://gpu:8888"))
    with raises_naming(PolicyError, "navdp:gpu"):
        check_source(PolicySource("navdp:gpu"))


@pytest.mark.usefixtures("offered")
def test_another_package_adds_an_agent() -> None:
    assert isinstance(load_policy("ahead"), ForwardOnly)
    assert "ahead" in AGENTS
    assert not AGENTS.is_own("ahead")
    assert AGENTS.is_own("forward-only")


@pytest.mark.parametrize("spec", ["random", "package.module:Class", "habitat:", "folder/package"])
def test_a_name_without_a_scheme_has_no_opener(spec: str) -> None:
    assert opener_of(spec) is None


def test_a_policy_refuses_kinds_that_it_does_not_solve() -> None:
    class Seeker(RandomActions):
        name = "seeker"
        kinds = ("objectnav", "areagoal")

    Seeker().check(make_task("objectnav"))
    with raises_naming(PolicyMismatch, "'seeker'", "kind pointnav", "objectnav or areagoal"):
        Seeker().check(make_task("pointnav"))
    RandomActions().check(make_task("pointnav"))
