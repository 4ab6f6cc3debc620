"""NavDP's unmodified GNM and ViNT servers, with random weights, on the CPU, where a checkout is named."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from open_room import CAMERA, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Control, TimedAction, TrajectoryControl
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.errors import PolicyError
from robot_runtime.policies.remote.dialects import navdp
from robot_runtime.policies.remote.http_request import address, post
from robot_runtime.policies.remote.navigators import NavDP

WEIGHTS = """
import sys, torch, yaml
from {module} import {network}
torch.manual_seed(0)
torch.save({network}(yaml.safe_load(open("configs/{kind}.yaml"))).model.state_dict(), "{kind}.pth")
"""
NETWORKS = {"vint": ("vint_network", "ViNTPolicy"), "gnm": ("gnm_model", "GNMPolicy")}
TASK = make_task(control=Control((-0.5, 0.5), trajectory=TrajectoryControl()))
OBSERVATION = {
    "rgb": np.full((CAMERA.height, CAMERA.width, 3), (200, 90, 20), np.uint8),
    "depth": np.full((CAMERA.height, CAMERA.width, 1), 0.5, np.float32),
    navdp.POINT_SENSOR: np.array([2.0, 0.5], np.float32),
    navdp.IMAGE_SENSOR: np.full((CAMERA.height, CAMERA.width, 3), 90, np.uint8),
}


@contextmanager
def original(kind: str, folder: Path) -> Iterator[str]:
    source, python = os.environ.get("ROBOT_RUNTIME_NAVDP"), os.environ.get("ROBOT_RUNTIME_NAVDP_PYTHON")
    if source is None or python is None:
        pytest.skip("ROBOT_RUNTIME_NAVDP and ROBOT_RUNTIME_NAVDP_PYTHON do not name a checkout and its interpreter")
    own = shutil.copytree(Path(source) / "baselines" / kind, folder / kind)
    module, network = NETWORKS[kind]
    made = WEIGHTS.format(module=module, network=network, kind=kind)
    subprocess.run([python, "-c", made], cwd=own, check=True, timeout=300, env={**os.environ, "PYTHONPATH": str(own)})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--port", str(port), "--device", "cpu", f"--{kind}_checkpoint", f"{kind}.pth"]
    process = subprocess.Popen([python, f"{kind}_server.py", *options], cwd=own)

    def up() -> bool | None:
        assert process.poll() is None, "the server has ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0 or None

    try:
        assert wait_for(SystemClock(), up, 120.0, 0.2), "the server did not start"
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(30)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(NETWORKS))
def test_an_unmodified_server_explores_and_compares_with_an_image(kind: str, tmp_path: Path) -> None:
    with original(kind, tmp_path) as place:
        policy = NavDP(f"navdp://{place}", {"time_limit_s": 60})
        for seed in range(2):
            policy.reset(TASK, seed)
            move = policy.act(OBSERVATION)
            assert policy.info()["goal"] == navdp.NONE
            assert move is Action.STOP or isinstance(move, TimedAction)
        server = address(f"http://{place}")
        assert b"trajectory" in post(server, navdp.step(OBSERVATION, navdp.IMAGE, TASK), 60)
        with raises_naming(PolicyError, "404", "/pointgoal_step"):
            post(server, navdp.step(OBSERVATION, navdp.POINT, TASK), 60)
