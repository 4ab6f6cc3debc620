"""Shell completion, queried as bash does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def offered(line: str) -> list[str]:
    words = line.split(" ")
    environment = {
        **os.environ,
        "_ROBOT_RUNTIME_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    command = Path(sys.executable).with_name("robot-runtime")
    assert command.exists(), "`make test` installs the package"
    done = subprocess.run([command], env=environment, capture_output=True, text=True, timeout=60)
    return done.stdout.split()


@pytest.mark.slow  # a program for each
@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("robot-runtime r", {"run", "report", "replay"}),
        ("robot-runtime logs ", {"import", "recover"}),
        ("robot-runtime verdict ", {"add", "judge"}),
        ("robot-runtime scene ", {"info", "generate", "import"}),
        ("robot-runtime run --agent-", {"--agent-arg"}),
        ("robot-runtime run --agent ", {"random", "forward-only", "goal-follower", "oracle", "classical"}),
        ("robot-runtime run --task objectnav_h", {"objectnav_habitat2020"}),
        ("robot-runtime run --robot si", {"sim", "sim-noisy"}),
        ("robot-runtime run --sensor sem", {"semantic"}),
        ("robot-runtime run --localizer fused", {"fused", "fused-marvelmind", "fused-apriltag"}),
        ("robot-runtime serve robothor --referee fused-m", {"fused-marvelmind"}),
        ("robot-runtime run --camera real", {"realsense"}),
        ("robot-runtime run --scene ap", {"apartment"}),
        ("robot-runtime episodes generate --task pointnav_habitat", {"pointnav_habitat2019", "pointnav_habitat2020"}),
    ],
)
def test_commands_options_and_names_are_completed(line: str, some: set[str]) -> None:
    assert some <= set(offered(line))


def test_listing_all_commands_imports_no_large_library() -> None:
    """A shell waits for this at each completion, and a person for ``--help``."""
    code = "import sys; from robot_runtime.cli.main import build_app; build_app(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    loaded = set(done.stdout.split())
    assert {"sim_bridge.replay.cli", "calibration.cli"} <= loaded
    assert not loaded & {"numpy", "scipy", "cv2", "numba", "pydantic", "matplotlib", "mujoco", "onnxruntime"}
