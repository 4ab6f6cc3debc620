"""What a browser shows of the project's pages, and a run from its command to its result as a moving picture."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from robot_runtime.common.clock import SystemClock, wait_for
from tests.pictures.studio import ROOT, Image, Studio, beside, read, scaled, stacked
from tests.pictures.terminal import TerminalRun
from tests.support.docs_pages import steps

PLAIN = "document.head.insertAdjacentHTML('beforeend', '<style>::-webkit-scrollbar { display: none }</style>');"
HEIGHT_PX = 672
FRAME_S = 1.0
SHOWN_MS, LAST_MS = 160, 4000
LARGEST_BYTES = 1_000_000


def replay(studio: Studio) -> None:
    """The page of a replay, in the middle of the episode."""
    quick = ["--scene", "arena", "--task", "pointnav_quick"] if studio.short else []
    studio.command("run", "--robot", "synthetic-reality", "--agent", "bug", "--count", 1, "--out", "robot", *quick)
    studio.command("replay", "robot", "--into", "sim", "--out", "replays")
    page = next(path for path in sorted((studio.folder / "replays").glob("*.html")) if path.name != "index.html")
    step = "const s = document.getElementById('step'); s.value = 30; s.dispatchEvent(new Event('input'));"
    studio.write("replay.png", studio.shown(page, 1000, 1240, PLAIN + step))


def campaign(studio: Studio) -> None:
    """The report of the campaign that the tutorial rehearses."""
    page = ROOT / "docs" / "tutorials" / "test-campaign.md"
    for name, content in steps(page):
        if name != "run":
            short = content.replace("largest: 12", "largest: 3") if studio.short else content
            (studio.folder / name).write_text(short, encoding="utf-8")
    for name, content in steps(page):
        words = content.split()[1:]
        if name == "run" and words[0] in ("episodes", "campaign") and words[1] in ("generate", "rehearse"):
            ports = ["--port", "8850"] if words[1] == "rehearse" else []  # another test rehearses at the page's own
            studio.command(*words, *ports)
    report = studio.folder / "rehearsal" / "report" / "index.html"
    answer = studio.shown(report, 1100, 1080, PLAIN)
    starts = studio.shown(
        report, 1100, 900, f"{PLAIN} document.querySelector('svg.map').parentElement.scrollIntoView()"
    )
    studio.write("campaign.png", stacked([answer, starts], 0))


def eqa(studio: Studio) -> None:
    """Two questions in the report, from what was asked to what was seen."""
    run = ["--task", "eqa_embodied", "--agent", "eqa-memory", "--count", 1 if studio.short else 3, "--seed", 4]
    studio.command("run", *run, "--out", "logs")
    studio.command("report", "logs", "--out", "report.html")
    shown: list[Image] = []
    for number in (0,) if studio.short else (0, 2):
        only = f"""{PLAIN} document.querySelectorAll('main > *').forEach((one) => {{ one.style.display = 'none' }});
            const body = document.getElementById('e{number}'), card = body.parentElement;
            card.style.display = 'block'; card.open = true; card.querySelector('summary').style.display = 'none'"""
        shown.append(studio.shown(Path("report.html"), 592, 1205, only))
    studio.write("eqa.png", beside(shown))


@contextmanager
def _operated(studio: Studio, *arguments: str) -> Iterator[tuple[TerminalRun, str]]:
    """A run with a page, and the page's address."""
    port = "0" if studio.short else _port()
    run = TerminalRun(["run", *arguments, "--console", port, "--out", "logs/first"], studio.folder)
    try:
        found = wait_for(SystemClock(), lambda: "console: http" in run.said or run.process.poll(), 120.0, 0.1)
        assert found is True, run.said
        yield run, next(word for word in run.said.split() if word.startswith("http"))
    finally:
        run.end()


def _port() -> str:
    """The port of the documentation if it and the next are free, else any."""
    with ExitStack() as stack:
        try:
            for port in (8900, 8901):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
        except OSError:
            return "0"
    return "8900"


TRIES = 5
"""On a busy computer the page may be silent for so long that the robot stops: the person takes control again."""


def console(studio: Studio) -> None:
    """The page on a desk, on a phone while a person drives, and after STOP."""
    with _operated(studio, "--count", "2", "--seed", "6", "--real-time", "--attended") as (_, url):
        tab = studio.tab
        tab.visit(url, 1280, 900)
        tab.run(PLAIN)
        tab.run("$('name').value = 'ada'")
        for _ in range(TRIES):
            tab.until("!$('take').disabled")
            tab.run("$('take').click()")
            tab.until("link.mine && !$('resume').disabled")
            tab.run("$('resume').click()")
            tab.until("!link.eStop")
            tab.until("mapImage && state.step >= 5 || link.eStop")
            if not tab.run("link.eStop"):
                break
        desk = studio.look()
        tab.resize(390, 844)
        tab.run(PLAIN)
        tab.run("$('takeover').click()")
        tab.until("!$('pad').hidden")
        tab.run("scrollTo(0, 0)")
        phone = studio.look()
        tab.run("link.stop('ada')")
        tab.until("link.eStop && $('stage').className === 'held' && $('trip').textContent.startsWith('stopped')")
        tab.run("scrollTo(0, 0)")
        held = studio.look()
    studio.write("console.png", beside([scaled(desk, 850), *(scaled(one, 276) for one in (phone, held))], 6, 216))


def movie(studio: Studio) -> None:
    """A run on a terminal, its map and its page on a phone, from the command to the result."""
    frames: list[Pillow.Image] = []

    def take() -> None:
        left = run.screen.picture()
        below = np.full((HEIGHT_PX - len(left), left.shape[1], 3), 60, np.uint8)
        uri = studio.tab.run("mapImage ? $('map-canvas').toDataURL() : ''")
        if uri:
            path = studio.folder / "map.png"
            path.write_bytes(base64.b64decode(uri.partition(",")[2]))
            drawn = read(path)
            drawn = scaled(drawn, min(below.shape[1], int((len(below) - 8) * drawn.shape[1] / drawn.shape[0])))
            beyond = (below.shape[1] - drawn.shape[1]) // 2
            below[8 : 8 + len(drawn), beyond : beyond + drawn.shape[1]] = drawn
        page = scaled(studio.look(), 311)[:HEIGHT_PX]
        frames.append(Pillow.fromarray(beside([np.concatenate([left, below]), page], 8, 60)))

    with _operated(studio, "--count", "1", "--seed", "6", "--real-time") as (run, url):
        studio.tab.visit(url, 390, 844)
        began = time.monotonic()
        while run.process.poll() is None and not (studio.short and len(frames) == 8):
            take()
            time.sleep(max(0.0, began + FRAME_S * len(frames) - time.monotonic()))
        if not studio.short:
            run.end()
            studio.tab.until("!$('closing').hidden")
            take()
    path = studio.out / "first-run.webp"
    times = [SHOWN_MS] * (len(frames) - 1) + [LAST_MS]
    for quality in (70, 50, 30):
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0, quality=quality, method=6)
        if path.stat().st_size <= LARGEST_BYTES:
            return
    raise RuntimeError(f"{path}: has {path.stat().st_size} bytes, of at most {LARGEST_BYTES}")
