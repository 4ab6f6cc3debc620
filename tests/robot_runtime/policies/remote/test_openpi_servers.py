"""Servers of openpi, RoboArena and MolmoSpaces: the frames that each sends and expects, and the meaning of chunks.

Emulators speak what the sources say (openpi at 15a9616, RoboArena at 6fa329f, MolmoSpaces at 1320b26). The unmodified
servers are tested where a checkout is named by an environment variable.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming
from websockets.sync.server import ServerConnection, serve

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Control, TimedAction, TrajectoryControl
from robot_runtime.common import config
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, LinkLost, PolicyError
from robot_runtime.policies import load_policy
from robot_runtime.policies.remote.dialects import openpi
from robot_runtime.policies.remote.dialects.openpi import Chunks, decisions
from robot_runtime.policies.remote.protocol import pack, unpack
from robot_runtime.policy import Observation
from robot_runtime.records import EndReason
from robot_runtime.runtime import run_episode

TASK = make_task(control=Control((-0.5, 0.5), trajectory=TrajectoryControl()))
ROBOARENA = {
    "image_resolution": [24, 24],
    "needs_wrist_camera": False,
    "n_external_cameras": 1,
    "needs_stereo_camera": False,
    "needs_session_id": True,
    "action_space": "joint_position",
}
TURNS = {"actions": np.array([[2.0], [3.0]])}
"""Ids of turn_left and turn_right."""


def seen() -> Observation:
    rgb = np.full((24, 32, 3), (200, 90, 20), np.uint8)
    return {"rgb": rgb, "instruction": np.array("go to the red chair")}


@contextmanager
def server(about: Any, answer: Callable[[dict[Any, Any]], Any]) -> Iterator[tuple[str, list[dict[Any, Any]]]]:
    """A server that sends ``about`` and answers each request; a text is sent as text. Yields its place and requests."""
    requests: list[dict[Any, Any]] = []

    def handle(connection: ServerConnection) -> None:
        connection.send(pack(about))
        for frame in connection:
            requests.append(unpack(frame))
            said = answer(requests[-1])
            connection.send(said if isinstance(said, str | bytes) else pack(said))

    with serve(handle, "127.0.0.1", 0, compression=None, max_size=None) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"127.0.0.1:{running.socket.getsockname()[1]}", requests
        running.shutdown()
        thread.join()


def roboarena(request: dict[Any, Any]) -> Any:
    return "reset successful" if request.pop("endpoint") == "reset" else TURNS


# --- frames ---------------------------------------------------------------------------------------------------------


def test_openpis_answer_is_a_chunk_and_the_instruction_is_the_prompt() -> None:
    with server({}, lambda _: TURNS) as (place, requests):
        policy = load_policy(f"openpi://{place}", actions="ids", keys="rgb=observation/image")
        assert policy.needs == ("rgb",)
        policy.reset(TASK, 0)
        assert [policy.act(seen()) for _ in range(3)] == [Action.TURN_LEFT, Action.TURN_RIGHT, Action.TURN_LEFT]
        policy.close()
    assert len(requests) == 2
    assert requests[0]["prompt"] == requests[0]["task"] == "go to the red chair"
    assert "rgb" not in requests[0]
    assert "endpoint" not in requests[0]
    np.testing.assert_array_equal(requests[0]["observation/image"], seen()["rgb"])


def test_roboarena_names_endpoint_and_session_and_answers_a_reset_by_text() -> None:
    sessions = []

    def answer(request: dict[Any, Any]) -> Any:
        sessions.append((request["endpoint"], request["session_id"]))
        return roboarena(request)

    with server(ROBOARENA, answer) as (place, requests):
        policy = load_policy(f"openpi://{place}", actions="ids", carry_out=1)
        for episode in range(2):
            policy.reset(TASK, episode)
            assert [policy.act(seen()) for _ in range(2)] == [Action.TURN_LEFT] * 2
        policy.close()
    assert [endpoint for endpoint, _ in sessions] == ["reset", "infer", "infer"] * 2
    assert len({session for _, session in sessions[:3]}) == 1
    assert len({session for _, session in sessions}) == 2
    image = requests[1]["observation/exterior_image_0_left"]
    assert image.shape == (24, 24, 3)
    # As openpi_client.image_tools.resize_with_pad: proportions kept, black above and below.
    assert image[:3].max() == image[-3:].max() == 0
    assert image[12, 12].tolist() == [200, 90, 20]


@pytest.mark.parametrize("size", [[0, 24], [24], [1 << 30, 1 << 30], ["24", "24"], 24])
def test_an_image_size_that_is_none_is_refused(size: Any) -> None:
    with raises_naming(PolicyError, "image_resolution", str(size)):
        openpi.request(seen(), {**ROBOARENA, "image_resolution": size}, "s", Chunks())


def test_a_narrow_image_size_and_none_are_taken() -> None:
    for size, shape in (([1, 4000], (1, 4000, 3)), (None, (24, 32, 3))):
        message = openpi.request(seen(), {**ROBOARENA, "image_resolution": size}, "s", Chunks())
        assert message["observation/exterior_image_0_left"].shape == shape


def test_a_reset_that_fails_by_text_is_an_error() -> None:
    with server(ROBOARENA, lambda _: "Traceback\nKeyError: 'session_id'") as (place, _):
        policy = load_policy(f"openpi://{place}", actions="ids")
        with raises_naming(PolicyError, "KeyError: 'session_id'"):
            policy.reset(TASK, 0)


def test_molmospaces_arm_has_no_action_for_a_base() -> None:
    def answer(request: dict[Any, Any]) -> Any:
        assert request["task"] == "go to the red chair"
        return {"arm": np.zeros(7), "gripper": np.zeros(1), "server_timing": {"infer_ms": 3}}

    with server({"model_name": "m"}, answer) as (place, _):
        policy = load_policy(f"openpi://{place}", actions="ids")
        policy.reset(TASK, 0)
        with raises_naming(PolicyError, "arm, gripper", "no 'action'"):
            policy.act(seen())


# --- meaning --------------------------------------------------------------------------------------------------------


def test_velocities_are_one_decision_each_and_poses_one_trajectory() -> None:
    rows = np.array([[0.3, 0.1], [0.2, -0.1], [0.1, 0.0]], np.float32)
    moves = decisions(rows, Chunks("velocities", period_s=0.1, carry_out=2), TASK, "s")
    assert len(moves) == 2
    first = moves[0]
    assert isinstance(first, TimedAction)
    assert not first.settle
    point = first.points[0]
    assert (point.linear_m_s, point.angular_rad_s, point.after_s) == pytest.approx((0.3, 0.1, 0.1))
    (path,) = decisions(rows, Chunks("poses", period_s=0.5), TASK, "s")
    assert isinstance(path, TimedAction)
    assert [point.after_s for point in path.points] == pytest.approx([0.5, 1.0, 1.5])
    assert [point.pose and point.pose.x_m for point in path.points] == pytest.approx([0.3, 0.2, 0.1])


def test_columns_choose_among_those_of_an_arm() -> None:
    rows = np.arange(16.0).reshape(2, 8)
    moves = decisions(rows, Chunks("velocities", columns="6, 7"), TASK, "s")
    points = [move.points[0] for move in moves if isinstance(move, TimedAction)]
    assert [(point.linear_m_s, point.angular_rad_s) for point in points] == [(6.0, 7.0), (14.0, 15.0)]


@pytest.mark.parametrize(
    ("answer", "meaning", "named"),
    [
        (np.zeros((8, 8)), Chunks(), "actions=velocities"),
        (np.zeros((8, 8)), Chunks("velocities"), "columns=0,1"),
        (np.zeros((8, 2)), Chunks("velocities", columns="1,2"), "columns=0,1"),
        (np.zeros((8, 4)), Chunks("poses"), "2 or 3 columns"),
        (np.zeros(8), Chunks("ids"), "(8,)"),
        (np.zeros((0, 1)), Chunks("ids"), "(0, 1)"),
        (np.zeros((2000, 1)), Chunks("ids"), "(2000, 1)"),
        (np.array([["a"]]), Chunks("ids"), "<U1"),
        ("forward", Chunks("ids"), "(0,)"),
        ([[1.0], [2.0, 3.0]], Chunks("ids"), "(0,)"),
        ([[10**400]], Chunks("ids"), "object"),
        (np.array([[np.nan, 0.0]]), Chunks("velocities"), "not finite"),
        (np.array([[7]]), Chunks("ids"), "0 to 3"),
        (np.array([[0.5]]), Chunks("ids"), "0.5"),
    ],
)
def test_a_chunk_without_meaning_is_refused(answer: Any, meaning: Chunks, named: str) -> None:
    with raises_naming(PolicyError, "server", named):
        decisions(answer, meaning, TASK, "server")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"actions": "torques"}, "actions"),
        ({"columns": "a"}, "columns"),
        ({"period_s": 0}, "period_s"),
        ({"carry_out": 0}, "carry_out"),
        ({"keys": "rgb"}, "keys"),
        ({"colums": "1"}, "colums"),
    ],
)
def test_arguments_without_meaning_are_refused_before_a_connection(arguments: dict[str, Any], named: str) -> None:
    with raises_naming(ConfigError, named):
        load_policy("openpi://127.0.0.1:9", **arguments)


def test_a_sensor_that_the_task_lacks_is_named() -> None:
    with raises_naming(PolicyError, "dpeth", "rgb"):
        openpi.request(seen(), {}, "s", config.parse({"keys": "dpeth=image"}, Chunks, ""))


# --- episodes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"actions": np.full((1, 1), np.nan)}, "not finite"),
        ({"actions": np.zeros((1, 8))}, "columns"),
        ("Traceback\nRuntimeError: CUDA out of memory", "CUDA out of memory"),
        (b"\xc1", "cannot be read"),
        (bytes(2 << 20), ""),
    ],
)
def test_a_bad_answer_in_an_episode_ends_it_with_the_wheels_at_zero(bad: Any, named: str) -> None:
    count = iter(range(100))
    witness = Witness()
    with (
        server(ROBOARENA, lambda q: bad if next(count) == 3 else roboarena(q)) as (place, _),
        fake_robot(TASK) as robot,
    ):
        policy = load_policy(f"openpi://{place}", actions="ids", carry_out=1)
        with raises_naming(PolicyError if named else LinkLost, place, named):
            run_episode(Env(robot, TASK, make_scene(), [witness]), policy, make_episode(), seed=7)
        assert robot.base.state(1.0).velocity.angular_rad_s == 0.0
    assert witness.ends[0].reason is EndReason.FAULT
    assert [str(step.action) for step in witness.steps[1:]] == ["turn_left"] * 2


# --- unmodified servers ---------------------------------------------------------------------------------------------

RANDOM = """
import sys, types
import numpy as np
sys.path[:0] = {paths!r}
{imports}
class Policy(BasePolicy):
    def infer(self, obs):
        assert obs["prompt"] == "go to the red chair", sorted(obs)
        assert obs[{image!r}].dtype == np.uint8
        return {{"actions": np.random.default_rng(0).normal(size=(8, {width}), scale=0.1).astype(np.float32)}}
    def reset(self, *_):
        pass
WebsocketPolicyServer(Policy(), {config}host="127.0.0.1", port={port}).serve_forever()
"""


@contextmanager
def original(**parts: Any) -> Iterator[str]:
    """An unmodified server, with a policy whose actions are random, in a process of its own. Yields its place."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = RANDOM.format(port=port, **parts)
    process = subprocess.Popen([sys.executable, "-c", program])

    def up() -> bool | None:
        assert process.poll() is None, "the server has ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0 or None

    try:
        assert wait_for(SystemClock(), up, 60.0, 0.1), "the server did not start"
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(30)


def checkout(variable: str) -> Path:
    path = os.environ.get(variable)
    if path is None:
        pytest.skip(f"{variable} does not name a checkout")
    return Path(path)


@pytest.mark.slow
def test_the_unmodified_server_of_openpi() -> None:
    folder = checkout("ROBOT_RUNTIME_OPENPI")
    parts = {
        "paths": [str(folder / "packages/openpi-client/src"), str(folder / "src/openpi/serving")],
        "imports": "from openpi_client.base_policy import BasePolicy\n"
        "from websocket_policy_server import WebsocketPolicyServer",
        "image": "observation/image",
        "width": 32,
        "config": "metadata={'action_dim': 32}, ",
    }
    with original(**parts) as place:
        options = {"actions": "velocities", "columns": "0,1", "carry_out": 5, "keys": "rgb=observation/image"}
        policy = load_policy(f"openpi://{place}", **options)
        for seed in range(2):
            policy.reset(TASK, seed)
            moves = [policy.act(seen()) for _ in range(6)]
            assert all(isinstance(move, TimedAction) for move in moves)
            assert moves[0] == moves[5]
        policy.close()


@pytest.mark.slow
def test_the_unmodified_server_of_roboarena() -> None:
    parts = {
        "paths": [str(checkout("ROBOT_RUNTIME_ROBOARENA"))],
        "imports": "from roboarena.policy import BasePolicy\n"
        "from roboarena.policy_server import PolicyServerConfig, WebsocketPolicyServer",
        "image": "observation/exterior_image_0_left",
        "width": 8,
        "config": "PolicyServerConfig(needs_session_id=True), ",
    }
    with original(**parts) as place:
        policy = load_policy(f"openpi://{place}", actions="poses", columns="0,1,2", period_s=0.1)
        for seed in range(2):
            policy.reset(TASK, seed)
            move = policy.act(seen())
            assert isinstance(move, TimedAction)
            assert len(move.points) == 8
        policy.close()
