"""The wheel and the source distribution: complete, well described, and usable outside a checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of a copy of the project's files, and the wheel that was built from that sdist."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_symlink():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).symlink_to(os.readlink(ROOT / name))
        elif (ROOT / name).is_file() and not name.startswith(("tests/", "docs/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, cwd=source)
    return out


@pytest.mark.slow
def test_the_package_index_accepts_both(distributions: Path) -> None:
    files = sorted(map(str, distributions.iterdir()))
    assert len(files) == 2
    run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=ROOT)
    with tarfile.open(next(distributions.glob("*.tar.gz"))) as archive:
        assert any(name.endswith("/LICENSE") for name in archive.getnames())


@pytest.mark.slow
def test_an_installation_runs_the_demo_outside_the_checkout(distributions: Path, tmp_path: Path) -> None:
    """In an environment of its own, whose only link to this one are the libraries."""
    (wheel,) = distributions.glob("*.whl")
    python = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")}))
    # Plain paths: the editable installation that the development environment has is not found through them.
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries), encoding="utf-8")
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    command = tmp_path / "venv" / "bin" / "robot-runtime"
    printed = run(command, "run", "--count", "1", "--seed", "7", "--out", "logs", cwd=tmp_path)
    assert "pointnav-depth" in printed
    run(command, "report", "logs", "--out", "report.html", cwd=tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    where = run(python, "-c", "import robot_runtime; print(robot_runtime.__file__)", cwd=tmp_path)
    assert where.startswith(str(site))


@pytest.mark.slow
def test_an_installation_into_any_folder_finds_its_presets(distributions: Path, tmp_path: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    elsewhere.mkdir()
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", target, wheel, cwd=tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r}); from robot_runtime.common import config; "
        "print(*(config.find_preset(*found) for found in (('robots', 'sim'), ('tasks', 'pointnav_habitat2020'))))"
    )
    presets = run(sys.executable, "-I", "-c", code, cwd=elsewhere).split()
    assert [Path(preset).relative_to(target).parts[0] for preset in presets] == ["robot_runtime"] * 2


def test_every_library_has_wheels() -> None:
    """A robot has no compiler."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=;\[ ]", requirement)[0] for requirement in project["dependencies"]}
    # The platform of a wheel from an index is manylinux, that of one built on this machine linux.
    built = {name for name in names if "-linux_" in (metadata.distribution(name).read_text("WHEEL") or "")}
    assert not built
