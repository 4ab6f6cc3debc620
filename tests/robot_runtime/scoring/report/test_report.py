"""The report: one page that needs nothing else, shows every log, and trusts no text in it."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import synthetic
from chromium import browser
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from raising import raises_naming
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.parallel.map import Workers
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeEnd
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.scoring.report.episode_data import keyframe_indices, load_episode_data
from robot_runtime.scoring.report.map_drawing import furniture, rectangles
from robot_runtime.scoring.report.pages import MOST_ON_ONE_PAGE, write_report
from robot_runtime.scoring.report.png import write_picture

BUMP = [LEFT] * 3 + [FORWARD] * 4
EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture
def page(record, tmp_path: Path) -> Page:
    """A success, a failure with contacts, an interrupted episode with a hostile name, and a broken log."""
    header = synthetic.header()
    evil = synthetic.header(
        synthetic.objectnav_task("distance"), synthetic.objectnav_episode(id=EVIL), agent=EVIL, robot=EVIL
    )
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"x")
    paths = [
        record(header, [FORWARD] * 12 + [STOP]),
        record(header, BUMP, EpisodeEnd(EndReason.MAX_STEPS, 7, 99)),
        record(evil, [FORWARD], EpisodeEnd(EndReason.INTERRUPTED, 1, 9, EVIL)),
        broken,
    ]
    drawn: list[Path] = []
    scores = write_report(paths, tmp_path / "report.html", on_drawn=drawn.append)
    assert drawn == paths == [score.path for score in scores]
    return Page(tmp_path / "report.html")


def test_nothing_is_loaded_from_elsewhere_and_only_its_own_script_runs(page: Page) -> None:
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "embed", "form"}
    (script,) = page.scripts
    policy = next(attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv"))
    assert f"script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in (
        policy or ""
    )
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href"):
                assert value is not None
                assert value.startswith(("data:image/jpeg;base64,", "#"))


def test_hostile_text_is_text(page: Page) -> None:
    assert EVIL in page.text


def test_every_log_is_there(page: Page) -> None:
    assert page.count("details", "card") == 3
    for expected in ("success", "failed: step limit", "not scored", "broken.mcap: is not a log", "[9.5, 90.5]"):
        assert expected in page.text, expected


def test_it_says_where_the_time_of_a_step_went(page: Page) -> None:
    """The recorded steps took 1 ms to infer and 20 ms to act; percentiles are exact to 1 %."""
    text = " ".join(page.text.split())
    infer, act = (re.search(rf" {phase}((?:\d+\.\d\d){{3}}) ", text) for phase in ("infer", "act"))
    assert infer is not None
    assert act is not None
    assert [float(one) for one in re.findall(r"\d+\.\d\d", infer[1])] == pytest.approx([1.0] * 3, rel=0.02)
    assert [float(one) for one in re.findall(r"\d+\.\d\d", act[1])] == pytest.approx([20.0] * 3, rel=0.02)


def test_a_link_to_an_episode_leads_into_it_so_that_browsers_unfold_it(page: Page) -> None:
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    inside = ["#" + (attributes["id"] or "") for tag, attributes in page.tags if attributes.get("class") == "body"]
    assert inside == ["#e0", "#e1", "#e2"]
    assert set(inside) == set(links)


def test_episodes_of_several_agents_can_be_told_apart(record, tmp_path: Path) -> None:
    paths = [record(synthetic.header(agent=agent), [STOP]) for agent in ("tortoise", "hare")]
    write_report(paths, tmp_path / "report.html")
    groups = (tmp_path / "report.html").read_text().partition("Episodes")[0].split("<section")
    assert len(groups) == 3
    for group, agent in zip(groups[1:], ("tortoise", "hare"), strict=True):
        assert f'<span class="muted">{agent}</span></h2>' in group
        assert "failed: stopped elsewhere" in group


def test_every_column_of_the_list_can_be_reached(record, tmp_path: Path) -> None:
    write_report([record(synthetic.header(), [FORWARD, STOP])], tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    style = html[html.index("<style>") : html.index("</style>")]
    hidden = re.findall(r"\.([a-z]+) \{[^}]*display: none", style)
    cells = [attributes for tag, attributes in Page(tmp_path / "report.html").tags if tag in ("th", "td")]
    assert cells
    assert not [cell for cell in cells if cell.get("class") in hidden]
    assert re.search(r"\.list \{[^}]*overflow: auto", style)


@pytest.mark.slow
def test_nothing_is_out_of_reach_on_phones(page: Page, tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as tab:
        tab.open(tmp_path / "report.html")
        tab.run("document.querySelectorAll('details').forEach(one => one.open = true)")
        tab.looks_right()
        assert not tab.faults
        tab.run("document.querySelector('.list').style.overflow = 'hidden'")
        tab.resize(390, 900)
        assert [one for one in tab.out_of_reach() if "list" in one]


@pytest.mark.slow
def test_a_slider_moves_through_the_steps(record, tmp_path: Path) -> None:
    log = record(synthetic.header(), [*[FORWARD] * 12, STOP])
    write_report([log], tmp_path / "report.html")
    with browser(tmp_path / "profile") as tab:
        tab.open(tmp_path / "report.html")
        go = "(n) => { const s = document.querySelector('.timebar input'); s.value = n; "
        go += "s.dispatchEvent(new Event('input')) }"
        says, where = "document.querySelector('.timebar output').textContent", "document.querySelector('.map .now')"
        at = [tab.run(f"({go})({step}), {where}.getAttribute('cx')") for step in (0, 12)]
        assert float(at[1]) - float(at[0]) == pytest.approx(12 * 0.25, abs=0.01)
        assert tab.run(says).startswith("step 12 of 13: ")
        tab.click(".strip figure:first-child")
        assert tab.run(says).startswith("step 0 of 13")
        assert tab.run("document.querySelectorAll('.strip .shown').length") == 1
        assert not tab.faults


def test_a_page_has_its_date_and_command_and_the_runs(record, tmp_path: Path, monkeypatch) -> None:
    header = synthetic.header()
    run = "robot-runtime run --scene /home/ada/lab/scene --seed 4"
    header = replace(header, provenance={"created": "2026-11-28T03:04:05Z", "command": run})
    log = record(header, [FORWARD, STOP])
    monkeypatch.setattr(sys, "argv", ["/usr/bin/robot-runtime", "report", "--console-token", "hush", "ws://me:pw@host"])
    write_report([log], tmp_path / "report.html")
    text = " ".join(Page(tmp_path / "report.html").text.split())
    assert "Run 2026-11-28 03:04 by robot-runtime run --scene lab/scene --seed 4" in text
    assert re.search(r"Written 20\S+ by robot-runtime report --console-token … ws://…@host", text)


def test_robots_are_named_and_times_of_the_machine_come_after_the_episodes(record, tmp_path: Path) -> None:
    header = synthetic.header(localizers={"policy": ("odometry",), "referee": ("truth",)})
    steps = [replace(step, phase_s={"act": 0.1}) for step in synthetic.drive(header, [FORWARD, STOP])]
    recorder = Recorder(tmp_path / "timed")
    synthetic.play(recorder, header, steps)
    assert recorder.path is not None
    write_report([recorder.path], tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "robot synthetic · poses by odometry · judged by truth" in html
    assert html.index('<div class="list">') < html.index("host milliseconds per step") < html.index("<h2>Episodes")


@pytest.mark.parametrize("out", ["report.html", "report"])
def test_pages_do_not_name_the_machines_folders(record, tmp_path: Path, out: str) -> None:
    paths = [record(synthetic.header(), [STOP]), tmp_path / "logs" / "broken.mcap"]
    paths[1].write_bytes(b"x")
    write_report(paths, tmp_path / out)
    pages = [tmp_path / out] if out.endswith(".html") else list((tmp_path / out).rglob("*.html"))
    for each in pages:
        html = each.read_text(encoding="utf-8")
        assert str(tmp_path) not in html, each
        assert "/work/" not in html
    assert any("logs/broken.mcap" in each.read_text(encoding="utf-8") for each in pages)


def test_map_is_drawn_once_and_each_episode_on_it(page: Page) -> None:
    assert page.count("path", "wall") == 1
    assert page.count("svg", "map") == 3
    assert page.count("polyline", "track") == 3
    assert page.count("path", "contact") == 2
    assert page.count("circle", "won") == page.count("circle", "lost") == 1
    assert page.count("circle", "viewpoint") == 2
    assert page.count("polyline", "curve") == 3


def test_furniture_is_what_stands_on_the_floor() -> None:
    flat = synthetic.scene()
    rug = SceneObject("rug", "Rug", (1.0, 1.0, 0.01), (1.0, 1.0, 0.02))
    lamp = SceneObject("lamp", "Lamp", (1.0, 1.0, 2.2), (0.4, 0.4, 0.3))
    scene = replace(flat, file=replace(flat.file, objects=(*flat.objects, rug, lamp)))
    assert [item.id for item in furniture(scene)] == ["sofa_1", "table_1"]


def test_images_are_small_jpegs(page: Page) -> None:
    images = [attributes["src"] or "" for tag, attributes in page.tags if tag == "img"]
    assert len(images) == 8 + 8 + 2
    jpeg = base64.b64decode(images[0].partition(",")[2])
    decoded = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert decoded.shape == (48, 64, 3)


def test_colors_follow_the_readers_system(tmp_path: Path) -> None:
    write_report([], tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    style = re.sub(r"/\*.*?\*/", "", html[html.index("<style>") : html.index("</style>")], flags=re.S)
    assert "prefers-color-scheme: dark" in style
    light, dark = (set(re.findall(r"(--[a-z-]+):", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S))
    assert light == dark
    used = set(re.findall(r"var\((--[a-z-]+)", html)) - {"--c", "--aspect"}
    assert used <= light


def test_positions_off_the_map_leave_a_gap(record, tmp_path: Path) -> None:
    header = synthetic.header()
    steps = synthetic.drive(header, [FORWARD] * 4 + [STOP])
    away = replace(steps[2].referee, pose=replace(steps[2].referee.pose, x_m=-3.0))
    steps[2] = replace(steps[2], referee=away)
    recorded = record(header, [STOP])
    recorder = Recorder(recorded.parent)
    synthetic.play(recorder, header, steps)
    assert recorder.path is not None
    write_report([recorder.path], tmp_path / "report.html")
    assert Page(tmp_path / "report.html").count("polyline", "curve") == 2


def test_page_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "no").touch()
    with raises_naming(RecordingError, tmp_path / "no"):
        write_report([], tmp_path / "no" / "report.html")


class TestFolder:
    """Many logs: an index, and a page per log with links to its neighbors."""

    @pytest.fixture
    def folder(self, record, tmp_path: Path) -> Path:
        paths = [record(synthetic.header(seed=seed), [FORWARD] * seed + [STOP]) for seed in (1, 2)]
        (tmp_path / "broken.mcap").write_bytes(b"x")
        write_report([paths[0], tmp_path / "broken.mcap", paths[1]], tmp_path / "out")
        return tmp_path / "out"

    def test_a_page_each_and_links_between_them(self, folder: Path) -> None:
        assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.html")) == [
            "episodes/0.html",
            "episodes/1.html",
            "episodes/2.html",
            "index.html",
        ]
        for path in folder.rglob("*.html"):
            for tag, attributes in Page(path).tags:
                if tag == "a":
                    assert (path.parent / (attributes["href"] or "?")).is_file()

    def test_every_page_stands_alone(self, folder: Path) -> None:
        for name in ("0.html", "2.html"):
            page = Page(folder / "episodes" / name)
            ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
            used = {attributes["href"] for tag, attributes in page.tags if tag == "use"}
            assert used == {f"#{name}" for name in ids if str(name).startswith("map-")}
            assert page.count("polyline", "track") == 1
        assert "is not a log" in Page(folder / "episodes" / "1.html").text

    def test_the_index_holds_no_image(self, folder: Path) -> None:
        page = Page(folder / "index.html")
        assert not [tag for tag, _ in page.tags if tag == "img"]
        assert page.count("svg", "plot") == 3

    @pytest.mark.slow
    def test_any_number_of_processes_writes_the_same(self, record, tmp_path: Path) -> None:
        first = record(synthetic.header(), [FORWARD, STOP])
        paths = [first.with_name(f"{number:02d}.mcap") for number in range(20)]
        for path in paths:
            path.write_bytes(first.read_bytes())
        assert write_report(paths, tmp_path / "a", workers=Workers(2)) == write_report(paths, tmp_path / "b")
        for path in (tmp_path / "a").rglob("*.html"):
            written, again = (root / path.relative_to(tmp_path / "a") for root in (tmp_path / "a", tmp_path / "b"))
            strip = re.compile(r"Written \S+ by")
            assert strip.sub("", written.read_text()) == strip.sub("", again.read_text())

    def test_too_many_for_one_page(self, tmp_path: Path) -> None:
        with raises_naming(ConfigError, "report.html", MOST_ON_ONE_PAGE + 1, MOST_ON_ONE_PAGE):
            write_report([tmp_path / "x.mcap"] * (MOST_ON_ONE_PAGE + 1), tmp_path / "report.html")


class TestCommand:
    def test_nothing_that_could_be_scored_is_an_error_and_says_why(self, tmp_path: Path, capsys, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "empty.mcap").touch()
        assert run_command(["report", "empty.mcap"]) == 1
        assert "is not a log" in capsys.readouterr().out
        assert "is not a log" in Page(tmp_path / "report.html").text

    def test_a_folder_on_demand(self, record, tmp_path: Path, capsys) -> None:
        path = record(synthetic.header(), [FORWARD, STOP])
        assert run_command(["report", str(path), "--out", str(tmp_path / "r"), "--workers", "1"]) == 0
        assert (tmp_path / "r" / "index.html").is_file()
        assert "index.html" in capsys.readouterr().out


class TestKeyframes:
    def test_first_last_and_the_first_step_of_a_contact(self) -> None:
        records = synthetic.drive(synthetic.header(), [FORWARD] * 8 + BUMP + [FORWARD] * 20 + [STOP])
        touched = [i for i, r in enumerate(records) if r.result is not None and r.result.collided]
        chosen = keyframe_indices(records)
        assert len(chosen) == 8
        assert chosen == sorted(set(chosen))
        assert (chosen[0], chosen[-1]) == (0, len(records) - 1)
        assert touched[0] in chosen

    def test_short_episodes(self) -> None:
        assert keyframe_indices(synthetic.drive(synthetic.header(), [])) == [0]
        assert keyframe_indices(synthetic.drive(synthetic.header(), [STOP])) == [0, 1]


@given(st_numpy.arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))))
def test_rectangles_cover_each_true_cell_once(mask: np.ndarray) -> None:
    covered = np.zeros(mask.shape, int)
    for row0, row1, column0, column1 in rectangles(mask):
        covered[row0:row1, column0:column1] += 1
    assert np.array_equal(covered, mask.astype(int))


class TestPicture:
    def test_one_png(self, record, tmp_path: Path) -> None:
        write_picture(record(synthetic.header(), [*BUMP, STOP]), tmp_path / "x.png")
        image = cv2.imread(str(tmp_path / "x.png"))
        assert image is not None
        assert image.shape == (800, 1600, 3)

    def test_nothing_to_draw(self, tmp_path: Path) -> None:
        (tmp_path / "x.mcap").touch()
        with raises_naming(RecordingError, "x.mcap"):
            write_picture(tmp_path / "x.mcap", tmp_path / "x.png")

    @pytest.mark.slow
    def test_no_place_for_it(self, record, tmp_path: Path) -> None:
        (tmp_path / "no").touch()
        with raises_naming(RecordingError, tmp_path / "no"):
            write_picture(record(synthetic.header(), [STOP]), tmp_path / "no" / "x.png")


def test_an_interrupted_episode_is_shown_without_a_score(record) -> None:
    score, data = load_episode_data(record(synthetic.header(), [FORWARD], EpisodeEnd(EndReason.INTERRUPTED, 1, 9)))
    assert not score.scorable
    assert data is not None
    assert data.succeeded is None
    assert len(data.poses) == 2
