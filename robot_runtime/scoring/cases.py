"""Runner of worked cases, which compares metrics with values that a reviewer computed by hand.

A file of cases is JSON: ``{"cases": [{"id", "metric", "inputs", "expected", "tol"}, ...]}``. ``expected`` is a number,
a boolean, a list or an object of them, ``"nan"``, ``"inf"``, or ``"error"`` where the metric must refuse its inputs.
``tol`` is absolute, and 1e-9 unless stated. ``by_hand`` and ``source`` are for people. The metrics' names and inputs
are in ``case_metrics.py``.
"""

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.case_metrics import METRICS, CaseInputs

DEFAULT_TOLERANCE = 1e-9
_FIELDS = {"id", "metric", "inputs", "expected", "tol", "by_hand", "source"}
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SHAPE = 'a file of cases is JSON: {"cases": [{"id": ..., "metric": ..., "inputs": {...}, "expected": ...}]}'


@dataclass(frozen=True)
class CaseResult:
    """Result of a case.

    Attributes:
        id: id of the case.
        metric: name of the metric.
        expected: value in the file.
        actual: value of the metric; None where there is none.
        tolerance: absolute.
        reason: why it failed; empty if it passed.
        by_hand: the reviewer's calculation.
    """

    id: str
    metric: str
    expected: Any
    actual: Any
    tolerance: float
    reason: str = ""
    by_hand: str = ""

    @property
    def passed(self) -> bool:
        """Whether the metric gave what was expected."""
        return not self.reason


@dataclass(frozen=True)
class CaseReport:
    """Results of a file's cases, in its order."""

    path: Path
    results: tuple[CaseResult, ...]

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The cases that did not pass."""
        return tuple(result for result in self.results if not result.passed)

    @property
    def passed(self) -> bool:
        """Whether all cases passed."""
        return not self.failed


def run_cases(path: Path) -> CaseReport:
    """Run every case of a file. One that is not understood or cannot be run fails; the others still run.

    Raises:
        ConfigError: the file cannot be read, is not JSON, or has no list of cases.
    """
    seen: set[str] = set()
    return CaseReport(path, tuple(_result(item, number, seen) for number, item in enumerate(_read(path))))


def _result(item: Any, number: int, seen: set[str]) -> CaseResult:
    """The result of an item of a file; adds the case's id to ``seen``."""
    try:
        case, inputs = _parse(item)
        if case.id in seen:
            raise ValueError(f"an earlier case has the id {case.id!r}")
    except ValueError as error:
        stated = item if isinstance(item, dict) else {}
        texts = {name: stated[name] for name in ("id", "metric") if isinstance(stated.get(name), str)}
        name, metric = texts.get("id", f"case {number}"), texts.get("metric", "-")
        return CaseResult(name, metric, stated.get("expected"), None, 0.0, f"is not understood: {error}")
    seen.add(case.id)
    return _run(case, inputs)


def table(report: CaseReport) -> Group:
    """The cases that failed, with expected and actual value, and the number that passed."""
    count = len(report.results)
    summary = Text(f"{count - len(report.failed)} of {count} cases pass: {report.path}")
    if report.passed:
        return Group(summary)
    shown = Table(title="cases that fail", title_justify="left")
    for heading in ("case", "metric", "expected", "actual", "why", "by hand"):
        shown.add_column(heading, overflow="fold")
    for result in report.failed:
        actual = "-" if result.actual is None else _text(result.actual)
        cells = (result.id, result.metric, _text(result.expected), actual, result.reason, result.by_hand)
        shown.add_row(*map(Text, cells))
    return Group(shown, summary)


def _read(path: Path) -> list[Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "give a file of worked cases") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text", "save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}: is not JSON: line {error.lineno}, column {error.colno}: {error.msg}", "correct it there"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is nested too deeply", _SHAPE) from error
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list) or not document["cases"]:
        raise ConfigError(f"{path}: has no list of cases", _SHAPE)
    cases: list[Any] = document["cases"]
    return cases


def _parse(item: Any) -> tuple[CaseResult, dict[str, Any]]:
    """One case before it is run, and its inputs. Raises ``ValueError``: it is not of the form above."""
    if not isinstance(item, dict):
        raise ValueError("it is not an object")
    for name, kind in (("id", str), ("metric", str), ("inputs", dict)):
        if not isinstance(item.get(name), kind):
            raise ValueError(f"{name!r} is missing or not {_KINDS[kind]}")
    if "expected" not in item:
        raise ValueError("'expected' is missing: state the value, or \"error\" if the metric must refuse")
    if unknown := sorted(item.keys() - _FIELDS):
        raise ValueError(f"unknown field {unknown[0]!r}; known fields: {', '.join(sorted(_FIELDS))}")
    tolerance = item.get("tol", DEFAULT_TOLERANCE)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < math.inf:
        raise ValueError(f"'tol' is not a number >= 0: {tolerance!r:.50}")
    by_hand = str(item.get("by_hand", ""))
    case = CaseResult(item["id"], item["metric"], item["expected"], None, float(tolerance), by_hand=by_hand)
    return case, item["inputs"]


_KINDS = {str: "text", dict: "an object"}


def _run(case: CaseResult, stated: dict[str, Any]) -> CaseResult:
    def result(actual: Any, reason: str) -> CaseResult:
        return replace(case, actual=actual, reason=reason)

    metric = METRICS.get(case.metric)
    if metric is None:
        near = difflib.get_close_matches(case.metric, METRICS, 1)
        return result(None, f"there is no metric {case.metric!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    inputs = CaseInputs(stated)
    try:
        actual = metric(inputs)
        inputs.check_all_used()
    except KeyError as error:
        return result(None, f"input {error.args[0]!r} is missing or not one of its values")
    except (ValueError, ZeroDivisionError) as error:
        return result("error", "" if case.expected == "error" else f"the metric refuses: {error}")
    except Exception as error:  # noqa: BLE001 - whatever the inputs are, the case fails alone
        return result(None, f"inputs of the wrong type: {error}")
    agreed = agrees(case.expected, actual, case.tolerance)
    return result(actual, "" if agreed else _difference(case.expected, actual, case.tolerance))


def agrees(expected: Any, actual: Any, tolerance: float) -> bool:
    """Whether a metric's value is the expected one: same keys, same lengths, numbers within ``tolerance``."""
    if isinstance(expected, str) and expected in _WORDS:
        expected = _WORDS[expected]
    if isinstance(expected, Mapping):
        return (
            isinstance(actual, Mapping)
            and expected.keys() == actual.keys()
            and all(agrees(expected[key], actual[key], tolerance) for key in expected)
        )
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        return (
            isinstance(actual, Sequence)
            and not isinstance(actual, str)
            and len(expected) == len(actual)
            and all(agrees(*pair, tolerance) for pair in zip(expected, actual, strict=True))
        )
    if not isinstance(expected, int | float) or not isinstance(actual, int | float):
        return bool(expected == actual)
    if math.isnan(expected) or math.isinf(expected):
        return bool(expected == actual or (math.isnan(expected) and math.isnan(actual)))
    return abs(expected - actual) <= tolerance


def _difference(expected: Any, actual: Any, tolerance: float) -> str:
    if isinstance(expected, int | float) and isinstance(actual, int | float) and math.isfinite(expected):
        return f"differs by {abs(expected - actual):.3g}, more than {tolerance:g}"
    return "differs"


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else json.dumps(value, default=str)
