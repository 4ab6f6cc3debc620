"""A command that fails on the way leaves nothing of its output that anyone could take for whole.

Each command runs in a child whose files may not grow beyond a limit, as on a disk that is full: once so that the first
file fails, and once so that only the largest does.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import bag_drive
import pytest
import trimesh
from small_campaign import write_light_task, write_plan

from robot_runtime.cli.main import run_command
from robot_runtime.scenes.scene import find_scene

MAKES = {
    "bag": "export bag LOGS --out OUT.bag",
    "bags": "export bag LOGS --out OUT",
    "lerobot": "export lerobot LOGS --out OUT",
    "steps": "export steps LOGS --out OUT.csv",
    "parquet": "export steps LOGS --out OUT.parquet",
    "video": "export video LOG --out OUT.mp4",
    "videos": "export video LOGS --out OUT",
    "view": "view LOG --out OUT.rrd",
    "recover": "logs recover LOG --out OUT.mcap",
    "logs": "logs import --rosbag BAG --poses odometry --out OUT",
    "scene": "scene export arena --out OUT",
    "scene-episodes": "scene export arena --out OUT --episodes EPISODES --task LIGHT",
    "flat": "scene generate --out OUT",
    "mesh": "scene import MESH --out OUT --no-view-points",
    "from-map": "scene from-map MAP --out OUT",
    "from-log": "scene from-log LOGS --out OUT --no-mesh",
    "action-noise": "scene action-noise --out OUT.png",
    "noise": "scene noise --scene arena --out OUT.png",
    "json": "episodes generate --scene arena --task LIGHT --count 2 --out OUT.json.gz",
    "yaml": "episodes generate --scene arena --task LIGHT --count 2 --out OUT.yaml",
    "questions": "episodes questions apartment --out OUT.json.gz",
    "info": "scene info arena --json OUT.json",
    "scores": "score LOGS --json OUT.json",
    "score-rows": "score LOGS --parquet OUT.parquet",
    "report": "report LOGS --out OUT",
    "compare": "compare LOGS LOGS --json OUT.json",
    "gap": "gap LOGS LOGS --html OUT.html",
    "replay": "replay LOG --into sim --poses --out OUT",
    "import": "calibrate import CHAIN --robot lab-1 --out OUT.yaml",
    "board": "calibrate board --out OUT.png",
    "tags": "tags make --ids 1 --out OUT.pdf",
    "publish": "campaign plan PLAN --publish OUT.yaml",
}
CHAIN = (
    "cam0: {camera_model: pinhole, intrinsics: [500, 500, 320, 240], resolution: [640, 480],"
    " distortion_model: radtan, distortion_coeffs: [0.1, -0.05, 0, 0]}\n"
)


ALWAYS = frozenset(
    "bag lerobot video view recover scene json scores report replay import tags publish".split()  # noqa: SIM905
)
"""One of each way to write; the others write in a way that one of these shows."""

VARYING = ("view",)
"""Files whose size depends on how the writer's thread groups rows: a limit of half of it stops any run."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("inputs")
    task = write_light_task(folder)
    (folder / "chain.yaml").write_text(CHAIN, encoding="utf-8")
    floor = trimesh.creation.box(bounds=[(0, 0, -0.1), (4, 4, 0)])
    walls = [trimesh.creation.box(bounds=[(x, 0, 0), (x + 0.1, 4, 2)]) for x in (0, 1.5, 3.9)]
    trimesh.util.concatenate([floor, *walls]).export(folder / "room.obj")  # type: ignore[no-untyped-call]
    bag_drive.record(folder / "drive.bag", [bag_drive.REST])
    episodes = ["episodes", "generate", "--scene", "arena", "--task", str(task), "--count", "1"]
    assert run_command([*episodes, "--out", str(folder / "val.json.gz")]) == 0
    run = ["run", "--robot", "fake", "--scene", "arena", "--task", str(task), "--agent", "random", "--count", "1"]
    assert run_command([*run, "--out", str(folder / "logs")]) == 0
    (log,) = (folder / "logs").glob("*.mcap")
    return {
        "LOGS": str(log.parent), "LOG": str(log), "LIGHT": str(task), "CHAIN": str(folder / "chain.yaml"),
        "EPISODES": str(folder / "val.json.gz"), "MESH": str(folder / "room.obj"), "BAG": str(folder / "drive.bag"),
        "MAP": f"{find_scene('arena')}/map.yaml", "PLAN": str(write_plan(folder, 2)),
    }  # fmt: skip


def limited(command: list[str], most_bytes: int) -> tuple[int, str]:
    """Exit code of a command whose files are at most that large, and what it prints.

    It runs in a process of its own: a child of one that has rendered or compiled waits for those threads forever.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))

    words = [sys.executable, "-m", "robot_runtime", *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False, preexec_fn=limit)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.exhaustive]) for name in MAKES]
)
def test_nothing_is_left(name: str, inputs: dict[str, str], tmp_path: Path) -> None:
    words = [inputs.get(word, word).replace("OUT", str(tmp_path / "place" / "out")) for word in MAKES[name].split()]
    (tmp_path / "place").mkdir()
    code, printed = limited(words, resource.RLIM_INFINITY)
    assert code == 0, printed
    sizes = [path.stat().st_size for path in files(tmp_path)]
    shutil.rmtree(tmp_path / "place")
    (tmp_path / "place").mkdir()
    problems = []
    for limit in sorted({1, max(sizes) // 2 if name in VARYING else max(sizes) - 1}):
        code, printed = limited(words, limit)
        left = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")][1:]
        left = [one for one in left if name != "replay" or "/." in one or ".part" in one]  # finished replays stay
        if code in (0, 1, 99) or code < 0 or left or "remedy:" not in printed or "Traceback" in printed:
            problems.append((limit, code, left[:6], printed[-600:]))
        shutil.rmtree(tmp_path / "place")
        (tmp_path / "place").mkdir()
    assert not problems, problems
