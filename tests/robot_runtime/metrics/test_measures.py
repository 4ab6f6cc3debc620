"""Registry of the measures that kinds of tasks have."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import outside_packages
import pytest
import synthetic

from robot_runtime.errors import PluginError
from robot_runtime.metrics.measures import COMMON, MEASURES, Measures, all_metrics, measures_of

GATES = """
from robot_runtime.metrics.measures import Measures, MetricDefinition
class GateMeasures(Measures):
    defines = (MetricDefinition("gates", "gates", digits=0),)
"""


def test_all_metrics_are_those_of_the_installed_kinds() -> None:
    own = {metric.name for kind in MEASURES.usable().values() for metric in kind.defines}
    assert set(all_metrics()) == own | {metric.name for metric in COMMON}
    assert tuple(all_metrics())[: len(COMMON)] == tuple(metric.name for metric in COMMON)


def test_a_kind_without_measures_has_those_of_plain_navigation() -> None:
    assert measures_of(synthetic.pointnav_task()) is Measures


class TestOutsidePackage:
    @pytest.fixture(autouse=True)
    def _package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        offers = {"gatenav": "gates_of_tests:GateMeasures", "lostnav": "gates_of_tests:Lost"}
        outside_packages.install(tmp_path, "gates_of_tests", {MEASURES.group: offers}, GATES)
        monkeypatch.syspath_prepend(str(tmp_path))
        yield
        sys.modules.pop("gates_of_tests", None)

    def test_its_metrics_follow_ours(self) -> None:
        assert list(all_metrics())[-1] == "gates"
        assert all_metrics()["gates"].text(2.4) == "2"
        task: Any = SimpleNamespace(kind="gatenav")
        assert [metric.name for metric in measures_of(task).defines] == ["gates"]

    def test_what_cannot_be_loaded_fails_where_it_is_needed(self) -> None:
        task: Any = SimpleNamespace(kind="lostnav")
        with pytest.raises(PluginError) as caught:
            measures_of(task)
        assert "gates_of_tests" in caught.value.message


@pytest.mark.parametrize(
    ("name", "mean", "text"), [("success", 0.5, "50.0"), ("spl", 0.5, "0.500"), ("distance_to_goal", float("inf"), "∞")]
)
def test_means_in_tables(name: str, mean: float, text: str) -> None:
    assert all_metrics()[name].text(mean) == text
