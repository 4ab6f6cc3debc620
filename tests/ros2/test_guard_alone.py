"""``robot-runtime guard`` alone between a commander and each emulated base, which is on another DDS vendor."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import ros2_guard

from drivers.ros2.guard import node
from robot_runtime.errors import DeviceFault

LIMIT_S = 0.25
SPEED_MPS = 0.15

NAMESPACE = ("--namespace", "/_do_not_use")
BASES = {
    "create3": ("Twist", [("create3", "--no-services")]),
    "create3-periodic": ("Twist", [("create3", "--no-services", "--hazards", "periodic")]),
    "turtlebot4-jazzy": (
        "TwistStamped",
        [("create3", "--no-services", *NAMESPACE), ("turtlebot4_republisher", "--add", "hazard_detection")],
    ),
    "turtlebot3": ("Twist", [("turtlebot3",)]),
}


@pytest.fixture
def driving(emulator, ros2_domain, tmp_path):
    """A base that a commander drives through the guard: base, guard, commander."""
    with ExitStack() as stack:

        def start(name: str, speed_mps: float = SPEED_MPS):
            kind, programs = BASES[name]
            bases = [emulator(*options) for options in programs]
            preset = name.removesuffix("-periodic")
            guard = ros2_guard.guard(ros2_domain, tmp_path, preset)
            stack.callback(guard.close)
            commander = ros2_guard.commander(ros2_domain, tmp_path, kind, speed_mps)
            stack.callback(commander.close)

            def drives(state) -> bool:
                return state["velocity"][0] > 0.8 * speed_mps

            if name in ("create3", "turtlebot4-jazzy"):
                bases[0].touch(drives)
            bases[0].wait(drives, 20.0)
            return bases[0], guard, commander

        yield start


@pytest.mark.parametrize("name", BASES)
def test_a_killed_commander_leaves_the_wheels_at_zero(driving, name) -> None:
    base, _, commander = driving(name)
    killed_s = commander.kill()
    state = base.wait(lambda state: state["zero_at_s"])
    assert 0.0 < state["zero_at_s"] - killed_s < LIMIT_S
    assert base.wait(lambda state: state["stopped_at_s"])


def test_a_frozen_commander_leaves_them_at_zero(driving) -> None:
    base, _, commander = driving("turtlebot3")
    frozen_s = commander.freeze()
    state = base.wait(lambda state: state["zero_at_s"])
    assert 0.0 < state["zero_at_s"] - frozen_s < LIMIT_S


def test_a_killed_guard_leaves_them_at_zero(driving) -> None:
    base, guard, _ = driving("turtlebot3")
    killed_s = guard.kill()
    state = base.wait(lambda state: state["zero_at_s"])
    assert 0.0 < state["zero_at_s"] - killed_s < LIMIT_S
    time.sleep(0.3)
    assert base.state["zero_at_s"] == state["zero_at_s"]


def test_no_thread_of_it_can_wait_for_a_dead_program_s_shared_memory(driving) -> None:
    _, guard, commander = driving("turtlebot3")
    assert not [name for name in threads(guard.process.pid) if name.startswith("dds.shm")]
    assert [name for name in threads(commander.process.pid) if name.startswith("dds.shm")], "Fast DDS' default"


def threads(number: int) -> list[str]:
    """Names of the threads of a program and of its child, the keeper."""
    task = Path(f"/proc/{number}/task")
    children = [int(child) for thread in task.iterdir() for child in (thread / "children").read_text().split()]
    names = [(thread / "comm").read_text().strip() for thread in task.iterdir()]
    return [*names, *(name for child in children for name in threads(child))]


def test_a_contact_stops_them_at_once_and_a_release_lets_them_go(driving) -> None:
    base, _, _ = driving("create3")
    base.tell(bump=["bump_front_center"])
    state = base.wait(lambda state: state["hazard_to_zero_s"])
    assert state["hazard_to_zero_s"] < 0.1
    base.tell(bump=[])
    base.wait(lambda state: state["velocity"][0] > 0.8 * SPEED_MPS)


def test_it_and_its_network_have_real_time_priority_where_that_is_permitted(driving) -> None:
    def permitted() -> bool:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(node.PRIORITY))
        except OSError:
            return False
        return True

    _, guard, _ = driving("turtlebot3")
    with ThreadPoolExecutor(1) as thread:  # a thread has a priority of its own
        wanted = {os.SCHED_FIFO if thread.submit(permitted).result() else os.SCHED_OTHER}
    names = {path.name: (path / "comm").read_text() for path in Path(f"/proc/{guard.process.pid}/task").iterdir()}
    network = [int(number) for number, name in names.items() if name.startswith("dds")]
    assert len(network) > 3
    assert {os.sched_getscheduler(number) for number in (guard.process.pid, *network)} == wanted


def test_silent_odometry_stops_them(driving) -> None:
    base, _, _ = driving("create3")
    muted_s = base.tell(mute=["odom"])["now_s"]
    state = base.wait(lambda state: state["zero_at_s"])
    assert state["zero_at_s"] - muted_s < 0.25 + 0.1


def test_a_guard_whose_keeper_does_not_start_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> None:
        raise RuntimeError("no participant")

    monkeypatch.setattr(node, "RclpyTransport", fails)
    monkeypatch.setattr(node, "Node", lambda name: None)
    with pytest.raises(DeviceFault, match="did not start"):
        node.start_keeper(None)  # type: ignore[arg-type]


def test_it_asks_a_base_that_tells_changes_only_to_repeat_them(emulator, ros2_domain, tmp_path) -> None:
    base = emulator("create3", "--reflexes-off")
    base.tell(bump=["bump_front_center"])
    with ExitStack() as stack:
        for program in (
            ros2_guard.guard(ros2_domain, tmp_path, "create3"),
            ros2_guard.commander(ros2_domain, tmp_path, "Twist", SPEED_MPS),
        ):
            stack.callback(program.close)
        base.wait(lambda state: state["hazard_at_s"] and state["commands"])
        time.sleep(0.5)
        assert base.state["commanded"] == [0.0, 0.0], "pressed since before the guard began"
        base.tell(bump=[])
        base.wait(lambda state: state["velocity"][0] > 0.8 * SPEED_MPS)
