"""The documentation as a reader uses it: its copy buttons are clicked, and what they copied is pasted into a shell."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from chromium import SIZES, Tab, browser
from docs_pages import PAGES, ROOT, steps

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
FIRST_PAGE = ROOT / "docs" / "index.md"
OMITTED = "header, nav, .md-nav, .md-footer, .md-source, .headerlink"
"""What belongs to the theme, and not to the page."""

pytestmark = pytest.mark.slow


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the documentation, built as ``make docs`` builds it: a page may use the clipboard only from a host."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True, timeout=300)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def _url(site: str, page: Path) -> str:
    return f"{site}/{page.relative_to(ROOT / 'docs').with_suffix('.html')}"


def _copied(tab: Tab, url: str) -> list[str]:
    """What each copy button of a page copies."""
    tab.visit(url)
    tab.until("document.querySelectorAll('.highlight').length == document.querySelectorAll('.md-code__button').length")
    texts = []
    for number in range(tab.run("document.querySelectorAll('.md-code__button').length")):
        tab.run(f"document.querySelectorAll('.md-code__button')[{number}].id = 'button-{number}'")
        tab.click(f"#button-{number}")
        texts.append(tab.clipboard())
    return texts


def _pasted(text: str, folder: Path, activated: bool = True) -> subprocess.CompletedProcess[str]:
    """What a shell does with a text that is pasted into it, in which the environment is activated or not."""
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join([own] * activated + [part for part in os.environ["PATH"].split(os.pathsep) if part != own])
    return subprocess.run(
        ["bash", "-e", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.parametrize("page", [FIRST_PAGE, *TUTORIALS], ids=lambda page: page.stem)
def test_a_copy_button_copies_commands_without_their_prompt(page: Path, site: str, tab: Tab) -> None:
    copied = "\n".join(_copied(tab, _url(site, page))).splitlines()
    commands = [content for name, content in steps(page) if name == "run"]
    assert commands, "the page has commands"
    assert [command for command in commands if command not in copied] == []
    assert [line for line in copied if line.startswith("$ ")] == []


@pytest.mark.parametrize(
    "page",
    [FIRST_PAGE, *(pytest.param(page, marks=pytest.mark.exhaustive) for page in TUTORIALS)],
    ids=lambda page: page.stem,
)
def test_what_was_copied_runs(page: Path, site: str, tab: Tab, tmp_path: Path) -> None:
    for name, content in steps(page):
        if name != "run":
            (tmp_path / name).write_text(content, encoding="utf-8")
    commands = {content for name, content in steps(page) if name == "run"}
    for text in _copied(tab, _url(site, page)):
        if not commands.isdisjoint(text.splitlines()):
            done = _pasted(text, tmp_path)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def test_the_index_for_language_models_names_every_page(site: str) -> None:
    with urllib.request.urlopen(f"{site}/llms.txt", timeout=10) as answer:
        text = answer.read().decode()
    assert text.startswith("# robot_runtime\n\n> ")
    for page in PAGES:
        assert f"({page.relative_to(ROOT / 'docs').with_suffix('.html')}): " in text, page


def _readme_blocks() -> list[str]:
    """The README's shell blocks: what a forge's copy button copies of them is their text."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_readmes_commands_run(tmp_path: Path) -> None:
    demo, *others = _readme_blocks()
    assert demo.split() == ["make", "demo"], "run by hand and by `make demo` itself"
    assert others
    (tmp_path / ".venv").symlink_to(sys.prefix)  # as `make demo` leaves it in the checkout
    for block in others:
        shortened = block.replace("--count 20", "--count 1")
        done = _pasted(shortened, tmp_path, activated=False)
        assert done.returncode == 0, f"{shortened}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("page", [FIRST_PAGE, *TUTORIALS], ids=lambda page: page.stem)
def test_a_page_is_read_at_every_size(page: Path, site: str, tab: Tab) -> None:
    for width, height in SIZES:
        tab.visit(_url(site, page), width, height)
        assert tab.run("document.documentElement.scrollWidth <= innerWidth"), f"{width} x {height}"
        assert tab.run("[...document.querySelectorAll('article img')].every(image => image.alt)")
        assert tab.illegible(OMITTED) == [], f"{width} x {height}"


def test_every_page_names_its_pictures() -> None:
    for page in PAGES:
        assert not re.findall(r"!\[\]\(", page.read_text(encoding="utf-8")), f"{page.name}: a picture without a text"
