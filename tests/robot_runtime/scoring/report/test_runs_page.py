"""The page of all runs, in a real browser."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from chromium import browser

from robot_runtime.cli.main import run_command


@pytest.mark.slow
def test_runs_are_filtered_and_linked_without_a_server(tmp_path: Path) -> None:
    root, out = tmp_path / "logs", tmp_path / "report"
    for policy in ("oracle", "goal-follower"):
        command = ["run", "--robot", "fake", "--scene", "arena", "--count", "1", "--policy", policy]
        assert run_command([*command, "--out", str(root / f"a run of {policy}")]) == 0
    (root / "a run of oracle" / "clip #1.mp4").write_bytes(b"")
    (root / "a run of oracle" / "episode.html").write_text("<p>replay</p>", encoding="utf-8")
    assert run_command(["report", str(root), "--out", str(out), "--workers", "1"]) == 0
    index = out / "index.html"
    with browser(tmp_path / "profile") as tab:
        tab.open(out / "a run of oracle" / "episodes" / "0.html")
        tab.looks_right()
        shapes = "[...document.querySelectorAll('.pose-odometry')].map((one) => one.style.display)"
        assert "none" not in tab.run(shapes)
        labels = tab.run("[...document.querySelectorAll('.sources label')].map((one) => one.textContent.trim())")
        number = labels.index("odometry")
        tab.click(f".sources label:nth-child({number + 1}) input")
        assert tab.run(shapes).count("none") == len(tab.run(shapes)) - 1, "the legend stays"
        tab.open(index)
        tab.looks_right()
        visible = "[...document.querySelectorAll('tbody tr')].filter(r => !r.hidden).length"
        assert tab.run(visible) == 2
        choose = "(() => {{ const e = document.querySelector('[name={0}]'); e.value = '{1}'; "
        choose += "e.dispatchEvent(new Event('input', {{bubbles: true}})) }})()"
        tab.run(choose.format("policy", "oracle"))
        assert tab.run(visible) == 1
        assert tab.run("document.querySelector('output').textContent") == "1 of 2"
        tab.run(choose.format("until", "2001-01-01"))
        assert tab.run(visible) == 0
        tab.run(choose.format("until", ""))
        tab.run(choose.format("policy", ""))
        assert tab.run(visible) == 2
        links = tab.run("[...document.querySelectorAll('td a')].map(a => [a.textContent, a.href])")
        assert not tab.faults
    from urllib.parse import unquote, urlsplit

    paths = {text: Path(unquote(urlsplit(href).path)) for text, href in links}
    assert {"report and map", "video clip #1", "replay or page episode"} <= set(paths)
    assert all(path.is_file() for path in paths.values())


@pytest.mark.slow
def test_one_page_of_all_episodes_is_still_to_be_had(tmp_path: Path) -> None:
    command = ["run", "--robot", "fake", "--scene", "arena", "--policy", "oracle", "--count", "1"]
    assert run_command([*command, "--out", str(tmp_path / "logs" / "a")]) == 0
    shutil.copytree(tmp_path / "logs" / "a", tmp_path / "logs" / "b")
    page = tmp_path / "all.html"
    assert run_command(["report", str(tmp_path / "logs"), "--out", str(page), "--workers", "1"]) == 0
    assert "episode" in page.read_text(encoding="utf-8")
