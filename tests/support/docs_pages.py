"""Pages of the documentation: their commands, and a way of running them as a reader would."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from robot_runtime.cli.main import run_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"[|&;<>$*`~]")


def steps(page: Path, run: str = "console") -> list[tuple[str, str]]:
    """The page's actions in order: (``"run"``, command) or (file name, content); commands of one kind of block."""
    found = []
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        kind, body = block["kind"].strip(), block["body"]
        if kind == run:
            found += [("run", line[2:]) for line in body.splitlines() if line.startswith("$ ")]
        elif " file=" in kind:
            found.append((kind.split(" file=")[1], body))
    return found


def run_page(page: Path, todo: list[tuple[str, str]], folder: Path, path: list[Path]) -> None:
    """Do what a page says, in a folder, with programs looked for in ``path`` first."""
    for name, content in todo:
        if name != "run":
            (folder / name).write_text(content, encoding="utf-8")
        elif content.startswith("robot-runtime ") and not _SHELL.search(content):
            code, said = run_here(shlex.split(content, comments=True)[1:], folder)
            assert code == 0, f"{page.name}: $ {content}\n{said}"
        else:
            done = run_in_shell(content, folder, path)
            assert done.returncode == 0, f"{page.name}: $ {content}\n{done.stdout}\n{done.stderr}"


def run_here(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Exit code and output of a command in this process: its imports take longer than most commands."""
    known, said = set(sys.modules), io.StringIO()
    with (
        _in_folder(folder),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        sys.path.append("")
        try:
            code = run_command(arguments)
        finally:
            sys.path.remove("")
            for name in set(sys.modules) - known:  # a page's own agents: another page has others of that name
                if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]
    return code, said.getvalue()


def run_in_shell(content: str, folder: Path, path: list[Path]) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([*map(str, path), environment["PATH"]])
    environment.pop("PYTHONPATH", None)
    environment["COLUMNS"] = "120"
    return subprocess.run(
        ["bash", "-c", content],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """``contextlib.chdir``, which Python 3.10 lacks."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
