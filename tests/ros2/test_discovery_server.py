"""A network with a discovery server, as a Create 3 may have it: every other participant is a super client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ros2_programs import ROOT

PARAMETERS = json.dumps({"motion_control": {"safety_override": "none"}, "robot_state": {}})


@pytest.fixture
def program() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a program, and wait for its first line."""
    with ExitStack() as stack:

        def start(*command: str) -> subprocess.Popen[str]:
            made = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, *command], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(made.kill)
            assert made.stdout
            assert made.stdout.readline()
            return made

        yield start


@pytest.fixture
def server(ros2_domain, program, tmp_path, monkeypatch) -> subprocess.Popen[str]:
    """A discovery server, and the environment that makes this process and its programs its super clients."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE")
    made = program(str(Path(__file__).with_name("discovery_server_program.py")), str(ros2_domain), port, str(tmp_path))
    monkeypatch.setenv("ROS_DISCOVERY_SERVER", f"127.0.0.1:{port}")
    monkeypatch.setenv("ROS_SUPER_CLIENT", "TRUE")
    return made


def test_a_turn_goes_on_when_the_server_dies_and_nothing_new_is_begun(server, program, ros2_domain, tmp_path) -> None:
    robot = "turtlebot4-jazzy"
    program("-u", "-m", "sim_bridge.ros", "--family", robot, "--camera", "80x60@79", "--rate", "2", "--die-with-stdin")
    program_file, address = Path(__file__).with_name("discovery_turn_program.py"), os.environ["ROS_DISCOVERY_SERVER"]
    turning = [sys.executable, str(program_file), robot, str(ros2_domain), address, str(server.pid)]
    run = subprocess.run(turning, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    first, second, refusal = run.stdout.splitlines()
    outcome, at_death_deg, at_rest_deg = first.split()
    assert (outcome, second) == ("reached", "reached")
    assert 10 <= float(at_death_deg) < 25 < float(at_rest_deg) < 32
    assert "no publisher" in refusal
    assert "discovery server" in refusal


def test_what_has_met_goes_on_when_the_server_dies(server, program, ros2_domain) -> None:
    program("-m", "tests.ros2.emulators.create3_services", "--domain", str(ros2_domain), "--parameters", PARAMETERS)
    program_file = str(Path(__file__).with_name("discovery_client_program.py"))
    address = os.environ["ROS_DISCOVERY_SERVER"]
    client = [sys.executable, program_file, str(ros2_domain), address, str(server.pid)]
    read = subprocess.run(client, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
    assert read.split() == ["0.306", "0.306"]
