"""The page of a replay: complete in itself, honest about what is missing, and linked in time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import Tab, browser
from html_page import Page
from scripted import INTO_A_WALL, F, L, R, record

from robot_runtime.errors import RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.log_replay import ReplayCache, replay_log
from sim_bridge.replay.options import ReplayOptions
from sim_bridge.replay.page.page import write_page
from sim_bridge.replay.page.replay_charts import Curve, time_chart
from sim_bridge.replay.page.thumbnails import MOST_BYTES, Gallery, palette
from sim_bridge.replay.pose_replay import FramePair
from sim_bridge.replay.results import Note, Replay

EVIL = "</script><script>alert(1)</script>\"'&"
SHORT = {
    "action_noise": {
        "model": "gaussian",
        "forward_m": 0.25,
        "turn_deg": 30.0,
        "actions": {
            name: {"mean": mean, "covariance": [[0.0] * 3] * 3}
            for name, mean in (("move_forward", [-0.06, 0.0, 0.0]), ("turn_left", [0.0] * 3), ("turn_right", [0.0] * 3))
        },
    }
}
"""A robot whose every step is 6 cm short: it leaves an exact simulator at its second."""


def data_of(page: Page) -> dict[str, Any]:
    """Data from which the page's script draws."""
    found: dict[str, Any] = json.loads(page.scripts[0])
    return found


def replayed_with_images(log: Path, out: Path, **options: Any) -> tuple[Replay, Gallery]:
    galleries: list[Gallery] = []

    def watch(records: list[StepRecord]) -> Gallery:
        galleries.append(Gallery([record.index for record in records]))
        return galleries[0]

    chosen = ReplayOptions(**{"parts": ("pose", "action"), "out": out, **options})
    with ReplayCache(chosen) as cache:
        return replay_log(log, chosen, cache, log.stem, watch), galleries[0]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(room: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``replay.html`` of a robot that steps short, with a hostile note and name; and ``bare.html`` without any part."""
    folder = tmp_path_factory.mktemp("page")
    (log,) = record(folder / "logs", room, [[*INTO_A_WALL[:8], R, F, L]], options=SHORT)
    replay, gallery = replayed_with_images(log, folder)
    replay = replace(replay, agent=EVIL, notes=(Note("open", EVIL, EVIL), Note("closed", EVIL, EVIL)))
    write_page(folder / "replay.html", replay, gallery, many=True)
    bare = replace(replay, pose=None, action=None, notes=(Note("scene", "it is gone", "bring it back"),))
    write_page(folder / "bare.html", bare, None, many=False)
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page(folder / "replay.html")


def test_nothing_is_loaded_from_elsewhere_and_only_its_own_script_runs(page: Page) -> None:
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in (policy or "")
    assert "default-src 'none'" in (policy or "")
    assert [attributes.get("type") for tag, attributes in page.tags if tag == "script"] == ["application/json", None]
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href"):
                assert re.match(r"data:image/(png|jpeg);base64,|#|index\.html", value or "")


def test_folders_of_the_machine_are_not_on_the_page(folder: Path) -> None:
    html = (folder / "replay.html").read_text(encoding="utf-8")
    assert "simulated scene: " in html
    assert str(folder) not in html


def test_hostile_text_is_text_and_said_once_for_both_parts(page: Page) -> None:
    assert page.text.count("<script>alert(1)") == 3  # the agent, the note, its remedy
    assert re.search(r"open loop\s+closed loop\s+</script>", page.text)


def test_everything_is_there_by_step(page: Page) -> None:
    data = data_of(page)
    steps = data["last"] - data["first"] + 1
    assert len(data["labels"]) == len(data["texts"]) == len(data["bands"]) == steps
    assert [len(track) for track in data["tracks"].values()] == [steps, steps]
    assert data["labels"][:3] == ["start", "turn left", "look up"]
    assert data["divergence"] == 4
    assert len(data["shown"]) == len(data["images"]["error"]) == steps
    rows = [attributes for tag, attributes in page.tags if tag == "tr" and "data-step" in attributes]
    assert [int(row["data-step"] or -1) for row in rows] == list(range(steps))
    assert [row["data-step"] for row in rows if row.get("class") == "diverged"] == ["4"]


def test_a_page_without_results_says_why(folder: Path) -> None:
    page = Page(folder / "bare.html")
    assert "it is gone" in page.text
    assert "bring it back" in page.text
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert data_of(page)["tracks"].keys() == {"recorded"}


def test_a_log_that_lost_steps_keeps_the_others_in_their_places(room: Scene, tmp_path: Path, monkeypatch) -> None:
    (log,) = record(tmp_path / "logs", room, [[F, L, F, R]])
    steps = LogReader.steps

    def some(self: LogReader, images: bool = True) -> Iterator[StepRecord]:
        for step in steps(self, images):
            if step.index == 4:
                raise RecordingError("damaged", "check the disk")
            if step.index != 2:
                yield step

    monkeypatch.setattr(LogReader, "steps", some)
    replay, gallery = replayed_with_images(log, tmp_path, parts=("pose",))
    write_page(tmp_path / "page.html", replay, gallery, many=False)
    data = data_of(Page(tmp_path / "page.html"))
    assert data["labels"] == ["start", "move forward", "lost", "move forward"]
    assert [point is not None for point in data["tracks"]["recorded"]] == [True, True, False, True]
    assert [bool(text) for text in data["texts"]] == [True, True, False, True]
    assert data["shown"] == [0, 1, 3]


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def test_one_step_moves_everything(folder: Path, tab: Tab) -> None:
    tab.open(folder / "replay.html", "#step=2")
    shown = "document.getElementById('where').textContent"
    state = (
        "JSON.stringify([document.getElementById('error').src, document.getElementById('marker-replayed')"
        ".getAttribute('transform'), document.querySelector('.timed .cursor').getAttribute('x1'),"
        "document.querySelector('tr.current').dataset.step, document.querySelector('.bands .now')"
        ".getAttribute('points'), location.hash])"
    )
    assert tab.run(shown) == "step 2 of 12 · look up"
    second = json.loads(tab.run(state))
    assert second[3:6:2] == ["2", "#step=2"]
    tab.press("ArrowRight")
    assert str(tab.run(shown)).startswith("step 3 of 12")
    third = json.loads(tab.run(state))
    assert all(a != b for a, b in zip(second, third, strict=True))
    tab.press("End")
    tab.press("d")
    assert str(tab.run(shown)).startswith("step 4 ")
    tab.press("ArrowRight", shiftKey=True)
    assert str(tab.run(shown)).startswith("step 12 ")
    tab.press("ArrowLeft", shiftKey=True)
    assert tab.run(shown) == "step 2 of 12 · look up"
    tab.press("Home")
    assert tab.run(shown) == "step 0 of 12 · start"
    tab.run("document.querySelector('tr[data-step=\"7\"]').click()")
    assert str(tab.run(shown)).startswith("step 7 ")
    tab.run(
        "(() => { const plot = document.querySelector('.timed'), box = plot.getBoundingClientRect();"
        "plot.dispatchEvent(new MouseEvent('click', {clientX: box.right - 1, clientY: box.top + 50})); })()"
    )
    assert str(tab.run(shown)).startswith("step 12 ")
    assert tab.faults == []


def test_it_fits_a_phone(folder: Path, tab: Tab) -> None:
    for name in ("replay.html", "bare.html"):
        tab.open(folder / name)
        tab.looks_right()
    assert tab.faults == []


def pairs(count: int) -> Iterator[FramePair]:
    random = np.random.default_rng(0)
    rgb = random.integers(0, 256, (240, 320, 3), np.uint8)
    for index in range(count):
        depth_m = random.uniform(1, 1.1, (240, 320)).astype(np.float32)
        simulated_m = np.where(depth_m > 1.09, np.float32(0), np.float32(1))
        yield FramePair(index, rgb, depth_m, rgb, simulated_m)


def test_long_episodes_are_thinned_out_and_bounded() -> None:
    """Even of pure noise, which no compression makes small."""
    gallery = Gallery(range(500))
    for pair in pairs(60):
        gallery(replace(pair, index=pair.index * 5))
    assert gallery.every == 5
    shown = gallery.images()
    assert gallery.every == 10
    assert [one.index for one in shown] == list(range(0, 300, 10))
    assert sum(one.size for one in shown) < MOST_BYTES
    assert gallery.scale_mm() == 100


def test_colors_of_the_error_map_are_apart() -> None:
    colors = palette().astype(int)
    assert len({tuple(color) for color in colors.tolist()}) == len(colors)
    nearer, same, farther = colors[0], colors[15], colors[30]
    assert nearer[2] > nearer[0]
    assert farther[0] > farther[2]
    assert same.min() > 240


def test_a_plot_has_gaps_marks_and_a_range_for_what_is_negative() -> None:
    values = [0.0, -2.0, None, 4.0, None, 1.0, 2.0]
    plot = str(time_chart("title", range(7), [Curve("a", "value", values)], limit=3.0, marks=[3]))
    assert plot.count('<polyline class="value"') == 3
    assert plot.count('class="mark"') == 1
    assert ">-2<" in plot
    assert time_chart("title", range(2), [Curve("a", "value", [None, None])]) == ""
