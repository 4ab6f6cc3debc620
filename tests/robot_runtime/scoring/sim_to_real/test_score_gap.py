"""Sim-to-real gaps of worlds whose difference is known."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from chromium import browser
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from raising import raises_naming
from rich.console import Console

from robot_runtime.cli.main import run_command
from robot_runtime.errors import RecordingError
from robot_runtime.scoring.sim_to_real.gap import Gap, find_gap, write_gap
from robot_runtime.scoring.sim_to_real.plot import draw_correlation, panels, title, write_page, write_plot
from robot_runtime.scoring.sim_to_real.table import sentence, table
from robot_runtime.scoring.summary import EpisodeScore

EASE = (0.1, 0.3, 0.5, 0.7, 0.9, 0.2, 0.6, 0.8)
"""Reachable SPL of each episode."""


def world(
    name: str, skills: dict[str, float], end: str = "stop", episodes: Sequence[float] = EASE
) -> list[EpisodeScore]:
    """Policies of some skill: an episode succeeds if skill and ease together reach 1, and its SPL is their mean."""
    return [
        EpisodeScore(
            Path(f"{name}/{agent}/{i}.mcap"),
            task="pointnav",
            agent=agent,
            scene="flat",
            episode=str(i),
            key=f"flat/{i}",
            end=end,
            metrics={"success": skill + ease >= 1, "spl": (skill + ease) / 2 if skill + ease >= 1 else 0.0},
            choices={"scorer": 1},
        )
        for agent, skill in skills.items()
        for i, ease in enumerate(episodes)
    ]


def printed(gap: Gap) -> str:
    console = Console(width=100, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    with console.file:
        console.print(table(gap))
    return console.export_text()


SKILLS = {"good": 0.9, "fair": 0.6, "poor": 0.3}


def test_equal_worlds_correlate_wholly_and_reverse_nothing() -> None:
    gap = find_gap(world("sim", SKILLS), world("real", SKILLS))
    spl = next(one for one in gap.correlations if one.metric == "spl")
    assert spl.interval is not None
    assert spl.interval.mean == pytest.approx(1.0)
    assert 0.9 < spl.interval.low < 1.0, "equal by luck, perhaps"
    assert (spl.reversals, spl.pairs) == ((), 3)
    assert [policy.metric("spl").difference.mean for policy in gap.policies] == [0.0, 0.0, 0.0]  # type: ignore[union-attr]


def test_each_world_names_its_robots_and_says_if_it_mixes_them() -> None:
    real = [replace(score, robot=f"locobot-{i % 2}") for i, score in enumerate(world("real", SKILLS))]
    gap = find_gap([replace(score, robot="sim") for score in world("sim", SKILLS)], real)
    shown = " ".join(printed(gap).split())
    assert "simulated robot sim" in shown
    assert "real mixes 2 robots: robot locobot-0; robot locobot-1" in shown


def test_a_policy_that_lives_off_the_simulator_changes_places() -> None:
    real = world("real", {"good": 0.9, "fair": 0.2, "poor": 0.3})
    gap = find_gap(world("sim", SKILLS), real)
    spl = next(one for one in gap.correlations if one.metric == "spl")
    assert spl.interval is not None
    assert spl.interval.mean < 1
    assert spl.interval.low <= spl.interval.mean <= spl.interval.high <= 1
    assert spl.reversals == (("fair", "poor"),)
    fair = next(policy for policy in gap.policies if policy.agent == "fair").metric("success")
    assert fair is not None
    assert fair.difference.mean == pytest.approx(fair.mean_b - fair.mean_a)
    assert fair.difference.mean < 0
    text = " ".join(printed(gap).split())
    assert "1 of 3 pairs of policies change places (fair and poor)" in text
    assert "SRCC" in text


@pytest.mark.parametrize(
    ("skills", "reason"),
    [
        ({"good": 0.9, "fair": 0.6}, "2 policies ran in both worlds; a correlation needs 3"),
        ({"one": 0.6, "two": 0.6, "three": 0.6}, "all methods score the same in simulation"),
    ],
)
def test_without_a_correlation_it_says_why_and_shows_the_rest(skills: dict[str, float], reason: str) -> None:
    gap = find_gap(world("sim", skills), world("real", skills))
    assert all(one.interval is None and reason in one.reason for one in gap.correlations)
    assert reason in " ".join(printed(gap).split())
    assert len(gap.policies) == len(skills)


def test_reasons_of_one_world_only_are_marked() -> None:
    real = world("real", SKILLS, end="max_steps")
    text = printed(find_gap(world("sim", SKILLS), real))
    assert [line.split()[-3:] for line in text.splitlines() if "step limit" in line] == [["only", "in", "reality"]]
    assert [line.split()[-3:] for line in text.splitlines() if "elsewhere" in line] == [["only", "in", "simulation"]]


def test_what_ran_in_one_world_only_is_named_and_takes_no_part() -> None:
    sim = world("sim", {**SKILLS, "never tried": 1.0})
    real = world("real", SKILLS, episodes=EASE[:5])
    gap = find_gap(sim, real)
    assert (gap.only_simulated, gap.only_real) == (("never tried",), ())
    assert {policy.episodes for policy in gap.policies} == {5}
    assert len(gap.unpaired) == 9
    assert "only in simulation: never tried" in printed(gap)


def test_nothing_in_common_is_an_error_that_says_what_there_is() -> None:
    with raises_naming(RecordingError, "good, fair, poor", "other"):
        find_gap(world("sim", SKILLS), world("real", {"other": 0.5}))
    moved = [replace(score, key=f"elsewhere/{score.episode}") for score in world("real", SKILLS)]
    with raises_naming(RecordingError, "policy", "good"):
        find_gap(world("sim", SKILLS), moved)


def test_everything_goes_into_the_file(tmp_path: Path) -> None:
    write_gap(tmp_path / "gap.json", find_gap(world("sim", SKILLS), world("real", SKILLS)))
    document = json.loads((tmp_path / "gap.json").read_text())
    assert [policy["agent"] for policy in document["policies"]] == list(SKILLS)
    assert document["correlations"][1]["interval"]["mean"] == pytest.approx(1.0)
    (tmp_path / "none").write_text("a file")
    with raises_naming(RecordingError, tmp_path):
        write_gap(tmp_path / "none" / "gap.json", find_gap(world("sim", SKILLS), world("real", SKILLS)))


class TestPictures:
    """``--picture`` and ``--html``, of worlds in which policies change places and fail for other reasons."""

    @pytest.fixture
    def gap(self) -> Gap:
        simulated = world("sim", {"good": 0.9, "fair": 0.6, "poor": 0.3, "slider": 0.95})
        real = world("real", {"good": 0.8, "fair": 0.6, "poor": 0.3, "slider": 0.4}, end="max_steps")
        return find_gap(simulated, real)

    def test_levels_have_an_interval_in_each_world(self, gap: Gap) -> None:
        assert {(level.agent, level.metric) for level in gap.levels} == {
            (agent, metric) for agent in ("good", "fair", "poor", "slider") for metric in ("success", "spl")
        }
        for level in gap.levels:
            for side in (level.simulated, level.real):
                assert 0 <= side.low <= side.mean <= side.high <= 1

    def test_every_policy_reversal_and_reason_is_drawn(self, gap: Gap) -> None:
        figure = Figure()
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        draw_correlation(axes, gap, "spl")
        labels = axes.get_legend_handles_labels()[1]
        assert {"good", "fair", "poor", "slider", "the same in both", "least squares", "change places"} <= set(labels)
        assert title(gap, "spl").startswith("SPL: SRCC ")

    @pytest.mark.slow
    def test_the_picture_is_a_png_of_some_size(self, gap: Gap, tmp_path: Path) -> None:
        write_plot(tmp_path / "gap.png", gap)
        assert (tmp_path / "gap.png").read_bytes().startswith(b"\x89PNG")
        (tmp_path / "nowhere").write_text("a file")
        with raises_naming(RecordingError, "nowhere"):
            write_plot(tmp_path / "nowhere" / "gap.png", gap)

    def test_without_a_correlation_there_is_still_a_picture(self, tmp_path: Path) -> None:
        two = find_gap(world("sim", {"a": 0.9, "b": 0.9}), world("real", {"a": 0.9, "b": 0.9}))
        assert "needs 3" in title(two, "spl")
        write_plot(tmp_path / "two.png", two)
        assert (tmp_path / "two.png").stat().st_size > 0

    def test_one_policy_has_no_correlation_to_draw(self, tmp_path: Path) -> None:
        one = find_gap(world("sim", {"a": 0.9}), world("real", {"a": 0.5}))
        assert [panel.alt for row in panels(one) for panel in row] == ["differences by policy", "how episodes failed"]
        assert sentence(one.correlations[0]).endswith("1 policy ran in both worlds; a correlation needs 3.")
        write_page(tmp_path / "gap.html", one)
        assert "1 polic" in (tmp_path / "gap.html").read_text(encoding="utf-8").split("</title>")[0]
        assert "1 policies" not in (tmp_path / "gap.html").read_text(encoding="utf-8")

    @pytest.mark.parametrize("width_in", [5.2, 6.4])
    def test_no_legend_is_cut(self, gap: Gap, width_in: float) -> None:
        for panel in (panel for row in panels(gap) for panel in row):
            figure = Figure(figsize=(width_in, panel.height_in), layout="constrained")
            FigureCanvasAgg(figure)
            axes = figure.add_subplot()
            panel.draw(axes)
            figure.draw_without_rendering()
            legend = axes.get_legend()
            assert legend is not None
            seen, whole = legend.get_window_extent(), figure.bbox
            assert whole.x0 <= seen.x0 < seen.x1 <= whole.x1, panel.alt
            assert whole.y0 <= seen.y0 < seen.y1 <= whole.y1, panel.alt

    def test_tables_and_pictures_suit_phones_and_dark_mode(self, gap: Gap, tmp_path: Path) -> None:
        write_page(tmp_path / "gap.html", gap)
        page = (tmp_path / "gap.html").read_text(encoding="utf-8")
        style = page[page.index("<style>") : page.index("</style>")]
        (table,) = re.findall(r'<table class="([a-z]+)">', page)
        assert not re.search(rf"\.{table} {{[^}}]*display: none", style)
        assert page.count("<img") == page.count('<img class="picture"') == 4
        assert re.search(r"@media \(prefers-color-scheme: dark\) { \.picture {[^}]*invert", style)

    @pytest.mark.slow
    def test_nothing_is_out_of_reach_on_phones(self, gap: Gap, tmp_path: Path) -> None:
        write_page(tmp_path / "gap.html", gap)
        with browser(tmp_path / "profile") as tab:
            tab.open(tmp_path / "gap.html")
            tab.looks_right()
            tab.run("document.querySelector('table').style.display = 'none'")
            assert [one for one in tab.out_of_reach() if "policies" in one]

    def test_paths_of_the_machine_are_not_on_the_page(self, tmp_path: Path) -> None:
        real = world("real", SKILLS)
        torn = tmp_path / "real" / "torn.mcap"
        real.append(replace(real[0], path=torn, key="flat/9", reason=f"{torn}: no end record", metrics={}))
        write_page(tmp_path / "gap.html", find_gap(world("sim", SKILLS), real))
        page = (tmp_path / "gap.html").read_text(encoding="utf-8")
        assert "1 log was not paired; the first: real/torn.mcap: not scored: real/torn.mcap: no end record" in page
        assert str(tmp_path) not in page

    def test_the_page_holds_everything(self, gap: Gap, tmp_path: Path) -> None:
        write_page(tmp_path / "gap.html", gap)
        page = (tmp_path / "gap.html").read_text(encoding="utf-8")
        assert "data:image/png;base64," in page
        assert "http://" not in page
        assert "https://" not in page
        for policy in gap.policies:
            assert policy.agent in page
        assert "only in reality" in page


@pytest.mark.parametrize("arguments", [["a", "b"], ["--json", "x.json", "a", "b"], ["compare", "a", "b"]])
def test_gap_alone_compares(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["gap", *arguments]) == RecordingError.exit_code
    assert "a: no such file or folder" in capsys.readouterr().err


def test_gap_lists_what_it_can(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["gap", "--help"])
    said = capsys.readouterr().out
    assert "compare" in said
    assert "tune" in said
