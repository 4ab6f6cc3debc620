"""A copy of the project without some kinds of tasks, in which the remaining fast tests must pass.

``python -m tests.structure.without_kinds FOLDER`` copies the tracked files, removes what belongs to the kinds, installs
the copy into a virtual environment that stands on the present one, and runs the fast tests. What belongs to a kind: its
folder, its presets, its entry points, its training modules, and every test and helper that names one of these.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import yaml

from tests.structure.tree import ROOT

OF_ALL_KINDS = tuple(
    map(
        Path,
        (
            "tests/robot_runtime/task_kinds/test_papers_table.py",
            "tests/test_shared_input_cases.py",
            "tests/test_remedies.py",
        ),
    )
)
"""Tests whose inputs belong to every kind: the table of papers, and wrong episode files of all formats."""

REMOVED = ("eqa", "rearrangement", "vln", "areagoal")


def copy_without(folder: Path, kinds: Iterable[str] = REMOVED) -> list[Path]:
    """Copy the tracked files to a new folder, without those of the kinds; return what was left out, relative."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    files = [
        Path(name) for name in listed.split("\0") if name and ((ROOT / name).is_file() or (ROOT / name).is_symlink())
    ]
    gone = _belonging(files, tuple(kinds))
    for file in files:
        if file not in gone:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file, follow_symlinks=False)
    project = folder / "pyproject.toml"
    package = re.compile(rf"robot_runtime\.task_kinds\.({'|'.join(kinds)})\.")
    kept = [line for line in project.read_text(encoding="utf-8").splitlines() if not package.search(line)]
    project.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return sorted(gone)


def _belonging(files: list[Path], kinds: tuple[str, ...]) -> set[Path]:
    """The files of the kinds, and of the tests those that name one of them, directly or by a helper that is gone."""
    gone = {file for file in files if _in_folder(file, kinds) or _is_preset(file, kinds) or file in OF_ALL_KINDS}
    presets = [
        re.escape(file.stem) for file in gone if file.suffix == ".yaml" and file.parts[:2] == ("launch", "tasks")
    ]
    modules = [rf"task_kinds[./]({'|'.join(kinds)})\b", rf"sim_bridge[./]training[./]({'|'.join(kinds)})_"]
    kind_names = rf"kind=\"({'|'.join(kinds)})\"|\"({'|'.join(kinds)})(-[a-z-]+)?\""
    named = re.compile("|".join([*modules, kind_names, *(rf"\b{preset}\b" for preset in presets)]))
    tests = {file: (ROOT / file).read_text(encoding="utf-8") for file in files if _is_test(file) and file not in gone}
    while found := {file for file, text in tests.items() if file not in gone and named.search(text)}:
        gone |= found
        helpers = [file.stem for file in found if not file.name.startswith("test_") and file.stem != "__init__"]
        if not helpers:
            break
        named = re.compile(rf"^\s*(from|import) (\S*\.)?({'|'.join(map(re.escape, helpers))})\b", re.MULTILINE)
    return gone


def _in_folder(file: Path, kinds: tuple[str, ...]) -> bool:
    if "task_kinds" in file.parts and set(file.parts) & set(kinds):
        return True
    return "training" in file.parts and file.name.removeprefix("test_").startswith(tuple(f"{kind}_" for kind in kinds))


def _is_preset(file: Path, kinds: tuple[str, ...]) -> bool:
    if file.parts[:2] != ("launch", "tasks") or file.suffix != ".yaml":
        return False
    return yaml.safe_load((ROOT / file).read_text(encoding="utf-8")).get("kind") in kinds


def _is_test(file: Path) -> bool:
    return file.parts[0] == "tests" and file.suffix == ".py" and file.parts[1] != "structure"


def _install(folder: Path) -> Path:
    """A virtual environment for the copy, on top of this one; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    python = folder / ".venv" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / ".venv" / "lib" / version / "site-packages"
    links = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (site / "zz_packages.pth").write_text("\n".join([*links, sysconfig.get_path("purelib")]) + "\n", encoding="utf-8")
    install = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--ignore-installed", "-e", "."]
    subprocess.run([python, *install], cwd=folder, check=True)
    return python


def main() -> int:
    """Make the copy, print what it lacks, and run its fast tests."""
    folder = Path(sys.argv[1]).resolve()
    gone = copy_without(folder)
    tests = [file for file in gone if file.parts[0] == "tests"]
    print(f"left out {len(gone)} files of {', '.join(REMOVED)}, {len(tests)} of them tests:")
    print("\n".join(f"  {file}" for file in tests))
    python = _install(folder)
    marks = "not slow and not exhaustive"
    return subprocess.run(
        [python, "-m", "pytest", "-q", "-m", marks, *sys.argv[2:]], cwd=folder, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
