"""Worked cases: ours and those beside the checkout pass, wrong ones are reported, malformed files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raising import raises_naming
from rich.console import Console

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.case_metrics import METRICS
from robot_runtime.scoring.cases import CaseReport, agrees, run_cases, table

OURS = Path(__file__).parent / "worked_cases.json"
SHARED = Path(__file__).resolve().parents[4] / "shared" / "reference" / "metrics_cases.json"
HALF = {"id": "half", "metric": "spl", "inputs": {"success": 1, "shortest": 2, "travelled": 4}, "expected": 0.5}


def run(folder: Path, *cases: Any) -> CaseReport:
    path = folder / "cases.json"
    path.write_text(json.dumps({"cases": cases}), encoding="utf-8")
    return run_cases(path)


def shown(report: CaseReport) -> str:
    console = Console(width=300)
    with console.capture() as capture:
        console.print(table(report))
    return capture.get()


@pytest.mark.parametrize("path", [OURS, SHARED], ids=["ours", "shared"])
def test_worked_cases(path: Path) -> None:
    if not path.is_file():
        pytest.skip(f"the worked cases are not at {path}")
    report = run_cases(path)
    assert report.results
    assert report.passed, [(case.id, case.expected, case.actual, case.reason) for case in report.failed]


def test_every_metric_has_a_case() -> None:
    if not SHARED.is_file():
        pytest.skip(f"the worked cases are not at {SHARED}")
    covered = {case.metric for path in (OURS, SHARED) for case in run_cases(path).results}
    assert covered == set(METRICS)


class TestReport:
    def test_says_expected_and_actual(self, tmp_path: Path) -> None:
        report = run(tmp_path, HALF, {**HALF, "id": "wrong", "expected": 0.25, "by_hand": "2/8"})
        (failed,) = report.failed
        assert (failed.id, failed.expected, failed.actual) == ("wrong", 0.25, 0.5)
        text = shown(report)
        assert "1 of 2 cases pass" in text
        for word in ("wrong", "spl", "0.25", "0.5", "differs by 0.25", "2/8"):
            assert word in text

    def test_all_pass(self, tmp_path: Path) -> None:
        assert "1 of 1 cases pass" in shown(run(tmp_path, HALF))

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"metric": "slp"}, "did you mean 'spl'"),
            ({"inputs": {"success": 1, "shortest": 2}}, "'travelled' is missing"),
            ({"inputs": {**HALF["inputs"], "zreo": "nan"}}, "no input 'zreo'"),  # type: ignore[dict-item]
            ({"inputs": {**HALF["inputs"], "shortest": "two"}}, "wrong type"),  # type: ignore[dict-item]
            ({"inputs": {**HALF["inputs"], "shortest": -2}}, "refuses: a length"),  # type: ignore[dict-item]
            ({"expected": "error"}, "differs"),
            ({"expected": [0.5]}, "differs"),
            ({"expected": {"spl": 0.5}}, "differs"),
            ({"expected": "nan"}, "differs"),
            ({"expected": None}, "differs"),
        ],
    )
    def test_says_why_and_goes_on(self, tmp_path: Path, change: dict[str, Any], reason: str) -> None:
        report = run(tmp_path, {**HALF, "id": "odd", **change}, HALF)
        assert [result.passed for result in report.results] == [False, True]
        assert reason in report.results[0].reason

    def test_tolerance(self, tmp_path: Path) -> None:
        near = {**HALF, "expected": 0.501}
        assert not run(tmp_path, near).passed
        assert run(tmp_path, {**near, "tol": 0.01}).passed


class TestMalformed:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "line 1"),
            ("[]", "cases"),
            ('{"cases": {}}', "cases"),
            ('{"cases": []}', "cases"),
            ("[" * 100_000, "cases"),
        ],
    )
    def test_file(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "cases.json"
        path.write_text(text, encoding="utf-8")
        with raises_naming(ConfigError, path, message):
            run_cases(path)

    def test_bytes_and_absence(self, tmp_path: Path) -> None:
        (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
        with raises_naming(ConfigError, "UTF-8"):
            run_cases(tmp_path / "binary.json")
        with raises_naming(ConfigError, tmp_path):
            run_cases(tmp_path / "absent.json")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"id": 7}, "'id'"),
            ({"metric": None}, "'metric'"),
            ({"inputs": []}, "'inputs'"),
            ({"tol": -1}, "'tol'"),
            ({"tol": True}, "'tol'"),
            ({"tolerance": 1}, "'tolerance'"),
            ({"id": "half"}, "'half'"),
        ],
    )
    def test_case_fails_alone(self, tmp_path: Path, change: dict[str, Any], message: str) -> None:
        report = run(tmp_path, HALF, {**HALF, "id": "odd", **change}, {**HALF, "id": "last"})
        assert [result.passed for result in report.results] == [True, False, True]
        assert message in report.results[1].reason
        assert "2 of 3 cases pass" in shown(report)

    def test_case_without_id_or_value(self, tmp_path: Path) -> None:
        report = run(tmp_path, {key: value for key, value in HALF.items() if key != "expected"}, 1, {**HALF, "id": "b"})
        assert [result.passed for result in report.results] == [False, False, True]
        assert "'expected'" in report.results[0].reason
        assert report.results[1].id == "case 1"

    values = st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["nan", "edges", "a", "planar"]),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["edges", "yaw"]), inner, max_size=2)
        ),
        max_leaves=6,
    )
    names = (
        "R",
        "Q",
        "d",
        "d_th",
        "success",
        "rows",
        "scores",
        "truth",
        "values",
        "pos",
        "goals",
        "final",
        "goal",
        "a",
        "b",
    )

    @pytest.mark.slow
    @given(st.sampled_from(sorted(METRICS)), st.dictionaries(st.sampled_from(names), values))
    @settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_no_input_stops_the_run(self, tmp_path: Path, metric: str, inputs: dict[str, Any]) -> None:
        assert len(run(tmp_path, {"id": "x", "metric": metric, "inputs": inputs, "expected": 0}).results) == 1


def test_agreement_is_strict_about_shape() -> None:
    assert agrees({"a": [1, 2.0]}, {"a": [1.0, 2]}, 0)
    assert not agrees({"a": 1}, {"a": 1, "b": 2}, 0)
    assert not agrees([1], [1, 2], 1)
    assert agrees("inf", float("inf"), 0)
    assert not agrees("inf", 1e300, 1e9)
    assert agrees(True, 1.0, 0)
