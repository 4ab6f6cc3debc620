"""A metric that is one entry with a function: from outside, and in the list itself, it is wherever metrics are."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import outside_packages
import pytest
import synthetic
from synthetic import FORWARD, STOP

from robot_runtime.campaign.facts import Facts
from robot_runtime.cli.main import run_command
from robot_runtime.metrics import measures
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.measures import COMMON, MEASURES, MetricDefinition, Run

SOURCE = (Path(__file__).resolve().parents[3] / "docs/examples/extend/detours.py").read_text(encoding="utf-8")


@pytest.fixture
def _outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    site = tmp_path / "site"
    site.mkdir()
    offers = {MEASURES.group: {"common.detours": "detours_of_tests:Detours"}}
    outside_packages.install(site, "detours_of_tests", offers, SOURCE)
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("detours_of_tests", None)


@pytest.mark.usefixtures("_outside")
def test_a_package_adds_a_metric_to_every_kind_of_task() -> None:
    scorer = EpisodeScorer(synthetic.header())
    assert scorer.metrics()["detour"] is None
    for record in synthetic.drive(synthetic.header(), [FORWARD] * 4 + [STOP]):
        scorer.on_step(record)
    assert scorer.metrics()["detour"] == pytest.approx(1 / 3)
    assert list(measures.all_metrics())[-1] == "detour"


def test_an_entry_of_the_list_is_all_that_a_metric_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def poses(run: Run) -> int:
        return len(run.poses)

    monkeypatch.setattr(measures, "COMMON", (*COMMON, MetricDefinition("poses", "poses", digits=0, value=poses)))
    scorer = EpisodeScorer(synthetic.header())
    for record in synthetic.drive(synthetic.header(), [FORWARD, STOP]):
        scorer.on_step(record)
    assert scorer.metrics()["poses"] == 3


@pytest.mark.slow
@pytest.mark.usefixtures("_outside")
def test_the_metric_is_in_tables_files_pages_comparisons_and_campaigns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = str(tmp_path / "logs")
    command = ["run", "--robot", "fake", "--policy", "oracle", "--count", "2", "--out", logs]
    assert run_command(command) == 0
    assert "detour" in capsys.readouterr().out
    for words in (["compare", logs, logs], ["score", logs, "--json", str(tmp_path / "s.json")]):
        assert run_command(words) == 0
        assert "detour" in capsys.readouterr().out
    assert json.loads((tmp_path / "s.json").read_text())["episodes"][0]["metrics"]["detour"] >= 1
    assert run_command(["report", logs, "--out", str(tmp_path / "r.html")]) == 0
    assert "detour" in (tmp_path / "r.html").read_text()
    assert run_command(["score", logs, "--parquet", str(tmp_path / "s.parquet")]) == 0
    parquet = pytest.importorskip("pyarrow.parquet")
    assert "detour" in parquet.read_table(tmp_path / "s.parquet").column_names


@pytest.mark.usefixtures("_outside")
def test_a_row_of_a_campaign_has_the_metric() -> None:
    from types import SimpleNamespace

    from robot_runtime.campaign.report import _csv

    facts = Facts("stop", "", None, metrics={"detour": 1.5, "success": 1.0})
    attempt = SimpleNamespace(
        facts=facts, start=0, policy="P1", name="0000-P1-1", robot="a", kinds=[], ended={"log": "x.mcap"}
    )
    state = SimpleNamespace(
        attempts={"0000-P1-1": attempt},
        starts=[SimpleNamespace(episode=SimpleNamespace(id="e"))],
        progress=lambda _: SimpleNamespace(valid={}, done=False),
    )
    (row,) = csv.DictReader(io.StringIO(_csv(cast(Any, state))))
    assert (row["success"], row["detour"]) == ("1.0", "1.5")
