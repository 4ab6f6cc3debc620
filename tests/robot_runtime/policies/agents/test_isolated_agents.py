"""Unmodified agents in their own processes, and their failures."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from open_room import Witness, fake_robot, make_episode, make_object_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions import timed
from robot_runtime.actions.discrete import Action
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, PolicyError, PolicyMismatch, RuntimeFault, UnknownAction
from robot_runtime.policies import load_policy
from robot_runtime.policies.agents import process as agent_process
from robot_runtime.policies.agents.opener import AgentPolicy
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.stepping import check_policy
from robot_runtime.policy import Observation
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, StepRecord, Subscriber
from robot_runtime.runtime import run_episode
from robot_runtime.tasks.task import load_task

AGENTS = '''
import os, random, subprocess, sys, time
import numpy as np


class Turning:
    """Habitat's kind: says each year's words in turn."""

    def __init__(self, answers="turn_left"):
        self.answers = answers.split(",")

    def reset(self):
        self.step = 0

    def act(self, observations):
        self.step += 1
        word = self.answers[(self.step - 1) % len(self.answers)]
        observations["rgb"][:] = 0  # written for a simulator, it may write into what it is given
        return {"action": word}


class Looking(Turning):
    def act(self, observations):
        print({name: (str(array.dtype), array.shape) for name, array in observations.items()})
        raise LookupError(sorted(observations))


class Drawing(Turning):
    def act(self, observations):
        return int(np.random.randint(1, 4)) if random.random() < 0.5 else np.int64(np.random.randint(1, 4))


class Misbehaving:
    """Behaves for two steps, then fails in the given way."""

    def __init__(self, how, at=3):
        self.how, self.at = how, int(at)

    def reset(self):
        self.step = 0

    def act(self, observations):
        self.step += 1
        return "move_forward" if self.step < self.at else getattr(self, self.how)()

    def hang(self):
        while True:
            time.sleep(0.01)

    def crash(self):
        os.kill(os.getpid(), 11)

    def leave(self):
        print("I have had enough")
        os._exit(3)

    def system_exit(self):
        sys.exit("bye")

    def raise_(self):
        raise ZeroDivisionError("no luck")

    def print_much(self):
        for _ in range(200):
            print("x" * 100000)
        sys.stderr.write("y" * 1000000)
        return "move_forward"

    def print_for_ever(self):
        while True:
            print("x" * 10000)

    def write_to_everything(self):
        for descriptor in range(3, 4096):
            try:
                os.write(descriptor, b"bytes that are longer than any frame's head")
            except OSError:
                pass
        return "move_forward"

    def close_everything(self):
        os.closerange(0, 4096)
        return "move_forward"

    def read_stdin(self):
        return "stop" if sys.stdin.read() == "" else "move_forward"

    def spawn(self):
        subprocess.Popen([sys.executable, "-c", "import time; print('child', flush=True); time.sleep(600)"])
        while True:
            time.sleep(0.01)


class Daemon(Turning):
    """Leaves a process in a session of its own, whose parent has ended."""

    def __init__(self, pid_file):
        super().__init__()
        sleeper = "from subprocess import *; print(Popen(['sleep', '600'], stdout=DEVNULL, start_new_session=True).pid)"
        done = subprocess.run([sys.executable, "-c", sleeper], stdout=subprocess.PIPE, check=True)
        with open(pid_file, "wb") as file:
            file.write(done.stdout)


class Hungry(Turning):
    def act(self, observations):
        return np.ones(1 << 28).sum()


class Answering:
    def __init__(self, answer):
        self.answer = eval(answer)

    def reset(self):
        pass

    def act(self, observations):
        return self.answer


class Seeker:
    """RoboTHOR's kind."""

    def __init__(self, word, depth):
        self.word, self.depth = word, depth

    def reset(self):
        pass

    def act(self, observations):
        rgb, depth, goal = observations["rgb"], observations["depth"], observations["object_goal"]
        assert list(observations) == ["object_goal", "depth", "rgb"]
        assert rgb.dtype == np.uint8 and rgb.ndim == 3 and type(goal) is str and goal == "Vase", (rgb.dtype, goal)
        if self.depth:
            assert depth.dtype == np.float32 and depth.shape == rgb.shape[:2]
            assert 0.5 <= depth.min() and depth.max() <= 5.0 and depth.max() > 1.0
        else:
            assert depth is None
        return self.word


def build():
    return Seeker, {"word": "RotateLeft", "depth": True}, True


def build_without_depth():
    return Seeker, {"word": "End", "depth": False}, False


def build_badly():
    return Seeker


class Model:
    """Stable-Baselines3's kind: its state says how often it was asked."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        count = 0 if episode_start[0] else state
        assert (state is None) == bool(episode_start[0])
        return np.array([1 if count < 2 else 0]), count + 1


def greedy(observation, action="turn_right"):
    return action


class Looks:
    pass


class Where(Turning):
    def act(self, observations):
        raise LookupError(sys.prefix)


class Driver:
    """Habitat challenge 2023: velocities, until it has gone far enough."""

    def reset(self):
        self.step = 0

    def act(self, observations):
        self.step += 1
        stop = 0.5 if observations["gps"][0] > 0.5 else -1.0
        return {
            "action": ("velocity_control", "velocity_stop"),
            "action_args": {
                "linear_velocity": np.array([1.0]),
                "angular_velocity": np.array([0.0]),
                "camera_pitch_velocity": np.array([0.0]),
                "velocity_stop": np.array([stop]),
            },
        }


class Strider:
    """Habitat challenge 2023: waypoints of half a metre ahead, until it has gone far enough."""

    def reset(self):
        pass

    def act(self, observations):
        stop = 0.5 if observations["gps"][0] > 0.6 else -1.0
        return {
            "action": ("waypoint_control", "velocity_stop"),
            "action_args": {
                "xyt_waypoint": np.array([1.0, 0.0, 0.0]),
                "max_duration": np.array([1.0]),
                "delta_camera_pitch_angle": np.array([0.0]),
                "velocity_stop": np.array([stop]),
            },
        }
'''
TASK = make_task(max_steps=50)
CONTINUOUS = make_task(max_steps=50, control=load_task("objectnav_hm3d2023").control)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("agents") / "their_agents.py"
    path.write_text(AGENTS)
    return str(path)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy computer a process takes more than a moment to end by itself, and to say how."""
    monkeypatch.setattr(agent_process, "_GRACE_S", 30.0)


@contextmanager
def agent(spec: str, time_limit_s: float = 20.0, python: Path | None = None, **arguments: Any) -> Iterator[AgentPolicy]:
    policy = load_policy(spec, Isolation(python, time_limit_s), **arguments)
    assert isinstance(policy, AgentPolicy)
    try:
        yield policy
    finally:
        policy.close()


def observation() -> Observation:
    shown = {"rgb": np.full((4, 5, 3), 7, np.uint8), "depth": np.ones((4, 5, 1), np.float32)}
    shown["gps"] = np.zeros(2, np.float32)
    for array in shown.values():
        array.flags.writeable = False
    return shown


def acted(policy: AgentPolicy, times: int = 1) -> list[Any]:
    policy.reset(TASK, 0)
    return [policy.act(observation()) for _ in range(times)]


# --- interfaces -----------------------------------------------------------------------------------------------------


def test_action_names_of_every_year(file: str) -> None:
    words = "stop,MOVE_FORWARD,turn_left_waypoint,turn_right"
    with agent(f"habitat:{file}:Turning", answers=words) as policy:
        assert acted(policy, 4) == [Action.STOP, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT]


def test_observations_arrive_unchanged(file: str) -> None:
    with agent(f"habitat:{file}:Looking") as policy:
        policy.reset(TASK, 0)
        shown = observation()
        with raises_naming(PolicyError, "LookupError") as error:
            policy.act(shown)
        assert "['depth', 'gps', 'rgb']" in error.value.message
        assert "in act" in str(error.value.__cause__)  # the agent's own traceback, for --debug
        assert shown["rgb"].max() == 7


def test_an_agents_random_numbers_depend_on_the_episodes_seed(file: str) -> None:
    with agent(f"habitat:{file}:Drawing") as policy:
        draws = []
        for seed in (3, 4, 3):
            policy.reset(TASK, seed)
            draws.append([policy.act(observation()) for _ in range(20)])
    assert draws[0] == draws[2] != draws[1]


def test_robothor_agents_get_meters_and_category_names(file: str) -> None:
    task = make_task("objectnav")
    with agent(f"robothor:{file}") as policy, fake_robot(task) as robot:
        assert policy.needs == ("rgb", "objectgoal", "depth")
        check_policy(policy, task)
        env = Env(robot, task, make_scene())
        shown = env.reset(make_object_episode())
        policy.reset(task, 0)
        assert policy.act(shown) is Action.TURN_LEFT
        env.close()
    with agent(f"robothor:{file}:build_without_depth") as policy:
        policy.reset(task, 0)
        assert policy.act(shown) is Action.STOP
        assert policy.needs == ("rgb", "objectgoal")
        with raises_naming(PolicyMismatch, "objectnav", TASK.name):
            check_policy(policy, TASK)


def test_gym_policies_keep_their_state(file: str) -> None:
    with agent(f"gym:{file}:Model") as policy:
        for _ in range(2):
            assert acted(policy, 3) == [Action.MOVE_FORWARD, Action.MOVE_FORWARD, Action.STOP]


def test_functions(file: str) -> None:
    with agent(f"function:{file}:greedy", action="turn_left") as policy:
        assert acted(policy) == [Action.TURN_LEFT]


def test_an_agent_runs_in_its_own_environment(file: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")}))
    (site / "numpy.pth").write_text(str(Path(np.__file__).parents[1]))
    with agent(f"habitat:{file}:Where", python=tmp_path / "venv") as policy:
        policy.reset(TASK, 0)
        with raises_naming(PolicyError, tmp_path / "venv"):
            policy.act(observation())


def test_an_agent_imports_its_own_modules_and_none_of_the_runtimes(tmp_path: Path) -> None:
    (tmp_path / "gym.py").write_text("WORD = 'turn_right'\n")
    (tmp_path / "mine.py").write_text("import gym\ndef decide(observations): return gym.WORD\n")
    with agent(f"function:{tmp_path / 'mine.py'}:decide") as policy:
        assert acted(policy) == [Action.TURN_RIGHT]


# --- loading --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("habitat:{file}:Missing", "'Missing'"),
        ("habitat:{file}", "module:name"),
        ("habitat:no_such_module:Agent", "'no_such_module'"),
        ("habitat:nowhere.py:Agent", "FileNotFoundError"),
        ("habitat:{file}:greedy", "TypeError"),
        ("gym:{file}:Looks", "predict()"),
        ("robothor:{file}:build_badly", "(class, arguments, render_depth)"),
        ("habitat:{file}:Misbehaving", "how"),
    ],
)
def test_a_loading_failure_is_named(file: str, spec: str, said: str) -> None:
    with raises_naming(PolicyError, said), agent(spec.format(file=file)):
        pass


def test_an_invalid_interpreter_is_named(file: str, tmp_path: Path) -> None:
    with raises_naming(ConfigError, tmp_path), agent(f"habitat:{file}:Turning", python=tmp_path):
        pass


def test_an_interpreter_without_numpy_is_reported(file: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    with raises_naming(PolicyError, "1", "loading", "numpy"):
        load_policy(f"habitat:{file}:Turning", Isolation(python))


def test_an_agent_within_the_runtime_has_no_interpreter_of_its_own() -> None:
    with raises_naming(ConfigError, "'random'"):
        load_policy("random", Isolation(None, 3.0))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_an_invalid_time_limit_is_refused(seconds: float) -> None:
    with raises_naming(ConfigError, f"{seconds} s"):
        Isolation(None, seconds)


# --- misbehaving ----------------------------------------------------------------------------------------------------

HURRY_S = {"hang": 0.5, "print_for_ever": 2.0}
"""The latter must have printed something, though it may be kept waiting for a second on a busy computer."""


def limit(policy: AgentPolicy, seconds: float) -> None:
    """From now on its answers may take so long."""
    policy._process._isolation = Isolation(None, seconds)


class Hurry(Subscriber):
    """Limits an agent's time once it has taken two steps, each of which may take long on a busy computer."""

    def __init__(self, policy: AgentPolicy, limit_s: float) -> None:
        self.policy, self.limit_s = policy, limit_s

    def on_step(self, record: StepRecord) -> None:
        if record.index == 2:
            limit(self.policy, self.limit_s)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("hang", ("0.5 s", "act()")),
        ("print_for_ever", ("2 s", "xxxx")),
        ("crash", ("SIGSEGV",)),
        ("leave", ("3", "act()", "I have had enough")),
        ("system_exit", ("SystemExit: bye",)),
        ("raise_", ("ZeroDivisionError: no luck",)),
        ("write_to_everything", ("act()", "file descriptors")),
        ("close_everything", ("act()",)),
    ],
)
def test_after_any_failure_the_robot_stops_and_earlier_steps_are_intact(
    file: str, tmp_path: Path, how: str, said: tuple[str, ...]
) -> None:
    recorder = Recorder(tmp_path)
    witness = Witness()
    spec = f"habitat:{file}:Misbehaving"
    with agent(spec, how=how) as policy, fake_robot(TASK) as robot:
        env = Env(robot, TASK, make_scene(), [recorder, witness, Hurry(policy, HURRY_S.get(how, 20.0))])
        with raises_naming(PolicyError, *said):
            run_episode(env, policy, make_episode(), seed=0)
        limit(policy, 20.0)
        before = robot.base.state(1.0)
        robot.clock.sleep(0.5)
        after = robot.base.state(1.0)
        assert (before.odom, after.velocity.linear_m_s) == (after.odom, 0.0)
        # The next episode finds a fresh agent.
        policy.reset(TASK, 0)
        assert policy.act(observation()) is Action.MOVE_FORWARD
    recorder.close()
    assert witness.ends[0].reason is EndReason.FAULT
    assert recorder.path is not None
    with LogReader(recorder.path) as log:
        assert [record.action for record in log.steps()] == [None, Action.MOVE_FORWARD, Action.MOVE_FORWARD]
        assert log.end is not None
        assert log.end.reason is EndReason.FAULT


def test_much_output_neither_blocks_nor_corrupts(file: str) -> None:
    with agent(f"habitat:{file}:Misbehaving", how="print_much", at="1") as policy:
        assert acted(policy, 3) == [Action.MOVE_FORWARD] * 3


def test_standard_input_is_empty(file: str) -> None:
    with agent(f"habitat:{file}:Misbehaving", how="read_stdin", at="1") as policy:
        assert acted(policy) == [Action.STOP]


@pytest.mark.slow
def test_children_end_with_the_agent(file: str) -> None:
    with agent(f"habitat:{file}:Misbehaving", how="spawn", at="1") as policy:
        policy.reset(TASK, 0)
        limit(policy, 1.0)
        process = policy._process._process
        assert process is not None
        with raises_naming(PolicyError, "1 s", "act()"):
            policy.act(observation())
        assert wait_for(SystemClock(), lambda: _group_is_gone(process.pid), 30.0, 0.02)


def test_no_descendant_outlives_the_agent(file: str, tmp_path: Path) -> None:
    with agent(f"habitat:{file}:Daemon", pid_file=str(tmp_path / "pid")) as policy:
        pid = int((tmp_path / "pid").read_text())
        assert _runs(pid)
        policy.reset(TASK, 0)
    assert not _runs(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no signal tells that the runtime was killed")
def test_no_descendant_outlives_a_runtime_that_was_killed(file: str, tmp_path: Path) -> None:
    killed = f"""
import os, signal
from robot_runtime.policies import load_policy
load_policy({f"habitat:{file}:Daemon"!r}, pid_file={str(tmp_path / "pid")!r})
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", killed], check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    assert wait_for(SystemClock(), lambda: True if not _runs(pid) else None, 30.0, 0.02)


def test_an_agents_memory_is_limited(file: str) -> None:
    policy = load_policy(f"habitat:{file}:Hungry", Isolation(memory_bytes=1 << 30))
    try:
        policy.reset(TASK, 0)
        with raises_naming(PolicyError, "MemoryError", "act()"):
            policy.act(observation())
    finally:
        policy.close()
    with raises_naming(ConfigError, "1024 bytes"):
        Isolation(memory_bytes=1024)


def test_an_agent_waits_although_rospy_gave_new_sockets_a_timeout(file: str) -> None:
    before_s = socket.getdefaulttimeout()
    socket.setdefaulttimeout(60.0)
    try:
        policy = load_policy(f"habitat:{file}:Turning")
    finally:
        socket.setdefaulttimeout(before_s)
    try:
        policy.reset(TASK, 0)
    finally:
        policy.close()


def test_closing_ends_the_process(file: str) -> None:
    policy = load_policy(f"habitat:{file}:Turning")
    assert isinstance(policy, AgentPolicy)
    process = policy._process._process
    assert process is not None
    policy.close()
    policy.close()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("None", PolicyError),
        ("1.5", PolicyError),
        ("True", PolicyError),
        ("object()", PolicyError),
        ("np.zeros(4)", PolicyError),
        ("[]", PolicyError),
        ("{}", PolicyError),
        ("lambda: 0", PolicyError),
        ("'x' * 5000000", PolicyError),
        ("'fly'", UnknownAction),
        ("17", UnknownAction),
        ("-1", UnknownAction),
        ("10 ** 30", UnknownAction),
        ("{'action': 'look_up'}", UnknownAction),
        ("{'action': 'velocity_control', 'action_args': {}}", UnknownAction),
    ],
)
def test_an_answer_that_is_no_action(file: str, answer: str, error: type[RuntimeFault]) -> None:
    with agent(f"habitat:{file}:Answering", answer=answer) as policy, fake_robot(TASK) as robot:
        env = Env(robot, TASK, make_scene())
        with pytest.raises(error) as raised:
            run_episode(env, policy, make_episode(), seed=0)
        assert raised.value.remedy
        assert len(raised.value.message) < 1000
        assert env.end.reason is EndReason.FAULT


def _runs(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def _group_is_gone(group: int) -> bool | None:
    try:
        os.killpg(group, signal.SIGCONT)
    except ProcessLookupError:
        return True
    return None


# --- continuous actions ---------------------------------------------------------------------------------------------


def test_velocities_drive_are_logged_and_scored(file: str, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with agent(f"habitat:{file}:Driver") as policy, fake_robot(CONTINUOUS) as robot:
        env = Env(robot, CONTINUOUS, make_scene(), [recorder])
        end = run_episode(env, policy, make_episode(goal=(0.6, 0.0)), seed=0)
        metrics = env.get_metrics()
    recorder.close()
    assert end.reason is EndReason.STOP
    assert metrics["success"]
    assert metrics["path_length_m"] == pytest.approx(0.51, abs=0.01)
    assert recorder.path is not None
    with LogReader(recorder.path) as log:
        records = list(log.steps())
    assert {record.action for record in records[1:-1]} == {Action.VELOCITY_CONTROL}
    assert records[1].command == timed.velocity(0.3, 0.0, 0.0, 0.1)
    assert records[1].result is not None
    assert records[1].result.measured.forward_m == pytest.approx(0.03, abs=0.002)
    assert (records[-1].action, records[-1].command) == (Action.STOP, None)


def test_waypoints_drive(file: str) -> None:
    witness = Witness()
    with agent(f"habitat:{file}:Strider") as policy, fake_robot(CONTINUOUS) as robot:
        env = Env(robot, CONTINUOUS, make_scene(), [witness])
        assert run_episode(env, policy, make_episode(goal=(1.0, 0.0)), seed=0).reason is EndReason.STOP
        assert env.get_metrics()["success"]
    assert [record.action for record in witness.steps[1:]] == [Action.WAYPOINT_CONTROL] * 2 + [Action.STOP]
    for record in witness.steps[1:3]:
        assert record.command == timed.waypoint(0.5, 0.0, 0.0, 0.0, 10.0)
        assert record.result is not None
        assert record.result.measured.forward_m == pytest.approx(0.5, abs=0.01)
