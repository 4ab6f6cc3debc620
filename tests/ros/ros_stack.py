"""The whole robot's side, as `roslaunch launch/locobot.launch sim:=true` brings it up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from ros_processes import LIMIT_S

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "launch"


def workspace_environ(ros_environ: Mapping[str, str]) -> dict[str, str]:
    """As after ``source ros_ws/devel/setup.bash``."""
    workspace = ROOT / "ros_ws"
    assert (workspace / "devel" / "setup.bash").is_file(), "`make test` builds ros_ws"
    return dict(ros_environ) | {
        "CMAKE_PREFIX_PATH": str(workspace / "devel"),
        "ROS_PACKAGE_PATH": str(workspace / "src"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


class Stack:
    """A running roslaunch, with a roscore of its own."""

    def __init__(self, environ: dict[str, str], port: int, *arguments: str) -> None:
        self.uri = f"http://127.0.0.1:{port}"
        # The simulated robot ends with this pipe, and, being required, takes the others along.
        self.process = subprocess.Popen(
            ["roslaunch", "-p", str(port), str(LAUNCH / "locobot.launch"), *arguments],
            env=environ | {"ROS_MASTER_URI": self.uri},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []

    def wait_for_line(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if text in line:
                return
        pytest.fail(f"roslaunch ended without {text!r}:\n{''.join(self.lines)}")

    def members(self) -> set[int]:
        """Processes whose ROS_MASTER_URI is ours, roslaunch and the master included."""
        wanted = f"ROS_MASTER_URI={self.uri}".encode()
        found = set()
        for entry in Path("/proc").iterdir():
            try:
                alive = entry.name.isdigit() and wanted in (entry / "environ").read_bytes()
            except OSError:  # gone, or somebody else's
                continue
            if alive:
                found.add(int(entry.name))
        return found

    def close(self) -> None:
        """End all of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait(LIMIT_S)
        self.process.stdout.close()
