"""Modules that an import or a command loads, each measured in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.structure.tree import KINDS, PRODUCT, ROOT, lines_of

_REPORT = """
import json, sys
files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
print("\\n" + json.dumps({name: file for name, file in files.items() if file}))
"""
_RUN = """
from robot_runtime.cli.main import run_command
assert run_command(["run", "--robot", "fake", "--agent", "goal-follower", "--count", "1", "--out", OUT]) == 0
"""


@cache
def loaded_by_env() -> Mapping[str, Path]:
    """The product's modules that ``import robot_runtime.env`` loads: name -> file."""
    return _loaded("import robot_runtime.env")


@cache
def loaded_by_run() -> Mapping[str, Path]:
    """The product's modules that a run of one PointNav episode on the fake robot loads: name -> file."""
    with tempfile.TemporaryDirectory() as folder:
        return _loaded(_RUN.replace("OUT", repr(str(Path(folder) / "logs"))))


def without_empty_packages(modules: Mapping[str, Path]) -> list[str]:
    """Names of modules, without those of an ``__init__.py`` of one line."""
    return sorted(name for name, file in modules.items() if file.name != "__init__.py" or lines_of(file) > 1)


def downstream(modules: Mapping[str, Path]) -> list[str]:
    """Names of modules of the recorder, of data sets and of single kinds of task, wherever they lie."""
    return sorted(name for name in modules if _is_downstream(name.split(".")))


def lines(modules: Mapping[str, Path]) -> int:
    """Lines of the files of modules."""
    return sum(map(lines_of, modules.values()))


def _is_downstream(parts: list[str]) -> bool:
    if {"recording", "datasets", "task_kinds"} & set(parts[1:2]):
        return True
    return any(word in KINDS for part in parts for word in part.split("_"))


def _loaded(program: str) -> dict[str, Path]:
    command = [sys.executable, "-c", program + _REPORT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the program to measure failed:\n{program}\n{done.stderr}")
    files: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return {name: Path(file) for name, file in files.items() if name.split(".")[0] in PRODUCT}
