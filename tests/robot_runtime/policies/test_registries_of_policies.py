"""Agents and schemes of policies that another package offers, and the kinds that a policy solves."""

from __future__ import annotations

from pathlib import Path

import outside_packages
import pytest
from box_world import make_task
from raising import raises_naming

from robot_runtime.errors import PolicyError, PolicyMismatch
from robot_runtime.policies import AGENTS, check_source, load_policy, load_source, opener_of
from robot_runtime.policies.baselines.blind import ForwardOnly, RandomActions
from robot_runtime.policies.openers import OPENERS
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

    def check(self, spec, arguments):
        if not spec.startswith("omnivla://"):
            raise PolicyError(f"{spec} has no host", "write omnivla://HOST:PORT")

OPENER = Opener()
"""


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = "policies_of_tests"
    offers = {OPENERS.group: {"omnivla": f"{package}:OPENER"}, AGENTS.group: {"ahead": f"{package}:ForwardOnly"}}
    outside_packages.install(tmp_path, package, offers, OFFERED)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("offered")
def test_another_package_adds_a_scheme() -> None:
    assert load_policy("omnivla://gpu:8888", stop_distance_m=0.3).name == "omnivla://gpu:8888"
    check_source(PolicySource("omnivla://gpu:8888"))
    with raises_naming(PolicyError, "omnivla:gpu"):
        check_source(PolicySource("omnivla:gpu"))


@pytest.mark.usefixtures("offered")
def test_another_package_adds_an_agent() -> None:
    assert isinstance(load_policy("ahead"), ForwardOnly)
    assert "ahead" in AGENTS
    assert not AGENTS.is_own("ahead")
    assert AGENTS.is_own("forward-only")


@pytest.mark.parametrize(
    ("spec", "observed", "remedy"),
    [
        ("wss//gpu:1", "wss//gpu", "PYTHONPATH"),
        ("omnivl://gpu:8888", "omnivl://", "did you mean 'omnivla://gpu:8888'?"),
        ("hf://lab/net", "hf://", "download it"),
        ("http://gpu:8888/act", "http://", "ws://HOST:PORT"),
        ("habitat:", "'habitat:'", "habitat:module:Class"),
        ("two.py", "two.py", "two.py:First or two.py:Second"),
        ("lab/net", "no such file or folder", "hub"),
        ("smal.zip", "no such file or folder", "did you mean 'small.zip'?"),
        ("a/b/c.onnx", "no such file or folder", "check the package's path"),
        ("empty", "without policy.yaml", "docs/how-to/policies.md"),
        ("notes.txt", "no package with policy.yaml", "docs/how-to/policies.md"),
        ("randm", "'randm'", "did you mean 'random'?"),
    ],
)
@pytest.mark.usefixtures("offered")
def test_a_name_that_means_nothing_is_named_with_the_nearest_that_does(
    spec: str, observed: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.py").write_text("class First: pass\nclass _Own: pass\nclass Second: pass\n")
    (tmp_path / "empty").mkdir()
    for name in ("notes.txt", "small.zip"):
        (tmp_path / name).write_text("")
    for use in (check_source, load_source):  # one resolution: before the robot moves as when it is loaded
        with raises_naming(PolicyError, observed, remedy):
            use(PolicySource(spec))


def test_one_name_has_one_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "random").write_text("a file of that name is not the agent")
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def reset(self): pass\n    def act(self, observations): return 0\n"
    )
    files = {"random": None, "mine.py:Mine": "mine.py", "habitat:mine.py:Mine": "mine.py", "ws://gpu:1": None}
    files |= {"package.module:Class": None, "small.zip": "small.zip"}
    for spec, file in files.items():
        assert opener_of(spec).file(spec) == (None if file is None else Path(file)), spec
    assert load_policy("random").name == "random"
    assert load_policy("mine.py:Mine").name == "mine.py:Mine"


def test_a_policy_refuses_kinds_that_it_does_not_solve() -> None:
    class Seeker(RandomActions):
        name = "seeker"
        kinds = ("objectnav", "areagoal")

    Seeker().check(make_task("objectnav"))
    with raises_naming(PolicyMismatch, "'seeker'", "kind pointnav", "objectnav or areagoal"):
        Seeker().check(make_task("pointnav"))
    RandomActions().check(make_task("pointnav"))
