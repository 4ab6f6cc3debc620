"""Registry of the measures that kinds of tasks have."""

from __future__ import annotations

import synthetic

from robot_runtime.metrics.measures import COMMON, MEASURES, Measures, all_metrics, measures_of


def test_all_metrics_are_those_of_the_installed_kinds() -> None:
    own = {metric.name for kind in MEASURES.usable().values() for metric in kind.defines}
    assert set(all_metrics()) == own | {metric.name for metric in COMMON}
    assert tuple(all_metrics())[: len(COMMON)] == tuple(metric.name for metric in COMMON)
    assert "completion" in own


def test_a_kind_without_measures_has_those_of_plain_navigation() -> None:
    assert measures_of(synthetic.pointnav_task()) is Measures
