"""The AI2-THOR simulator against ai2thor's documented interface: axes, actions, pictures, and what it refuses."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import synthetic
from raising import raises_naming
from same_view import VIEWS, assert_same_view
from thor_double import ai2thor

from robot_runtime.actions import timed
from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2, optical_axes, wrap_angle
from robot_runtime.errors import ConfigError, DriverMissing, InvalidStart, RuntimeFault
from robot_runtime.hal.lens import Lens
from robot_runtime.records import EpisodeHeader, Outcome
from sim_bridge.replay.backends.ai2thor import ThorBackend, make_backend
from sim_bridge.replay.backends.base import UnsupportedBySimulator
from sim_bridge.replay.camera_pose import logged_camera

F, L, R, U, D = synthetic.FORWARD, synthetic.LEFT, synthetic.RIGHT, synthetic.UP, synthetic.DOWN
HEADER = synthetic.header(episode=synthetic.pointnav_episode(scene="FloorPlan_Val1_1"))

Make = Callable[..., ThorBackend]


@pytest.fixture
def modules() -> dict[str, ModuleType]:
    return ai2thor()


@pytest.fixture
def make(modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Factory of backends for the flat's log, or for another."""
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    made: list[ThorBackend] = []

    def make(header: EpisodeHeader = HEADER, images: bool = False, **options: Any) -> ThorBackend:
        made.append(make_backend(header, None, images, options, "--into ai2thor"))
        return made[-1]

    yield make
    for simulator in made:
        simulator.close()
        simulator.close()


def controller_of(modules: dict[str, ModuleType]) -> Any:
    return modules["ai2thor.controller"].Controller.made[-1]


@VIEWS
def test_it_sees_what_the_logs_camera_would(make: Make, pose: SE2, tilt_deg: float):
    camera = logged_camera(HEADER).pose_from(pose, 0.0, math.radians(tilt_deg))
    simulator = make()
    assert_same_view(simulator.render(Lens.of(HEADER.intrinsics), camera), pose, math.radians(tilt_deg))
    assert_same_view(simulator.render(Lens.of(HEADER.intrinsics), camera), pose, math.radians(tilt_deg))  # moved


def test_a_camera_that_rolls_sees_what_one_beside_it_sees(make: Make):
    lens = Lens(49, 49, 30, 30, 24, 24)
    camera = np.eye(4)
    camera[:3, 3], camera[:3, :3] = (1.0, 1.9, 0.88), optical_axes(0.4, -0.3)
    rolled = camera.copy()
    rolled[:3, :3] = camera[:3, :3] @ np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    simulator = make()
    _, upright_m = simulator.render(lens, camera)
    _, rolled_m = simulator.render(lens, rolled)
    np.testing.assert_allclose(np.rot90(upright_m, 1), rolled_m, atol=2e-3)


def test_the_logs_actions_lead_where_they_led(make: Make):
    records = synthetic.drive(HEADER, [F, F, L, F, R, R, U, F, D, D])
    simulator = make(images=True)
    simulator.begin(HEADER, HEADER.episode.start, 0.0)
    for record in records[1:]:
        assert record.action is not None
        step = simulator.act(record.action)
        pose = record.referee.pose
        assert step.pose.distance_to(pose) < 1e-3
        assert wrap_angle(step.pose.yaw_rad - pose.yaw_rad) == pytest.approx(0, abs=1e-6)
        assert step.tilt_rad == pytest.approx(record.head.tilt_rad, abs=1e-9)
        assert (step.outcome, step.contact) == (Outcome.REACHED, False)
        assert step.frame is not None
        assert_same_view((step.frame.rgb, step.frame.depth_m), pose, record.head.tilt_rad)


def test_a_blocked_move_is_a_contact_and_moves_nothing(make: Make):
    simulator = make()
    simulator.begin(HEADER, SE2(0.4, 1.9, math.pi), 0.0)
    steps = [simulator.act(F) for _ in range(3)]
    assert [step.outcome for step in steps] == [Outcome.CONTACT] * 3
    assert steps[-1].pose.x_m == pytest.approx(0.4)
    assert simulator.act(R).outcome is Outcome.REACHED
    assert simulator.act(Action.STOP).outcome is Outcome.REACHED


def test_a_head_at_its_limit_stays_there_without_contact(make: Make):
    simulator = make()
    simulator.begin(HEADER, HEADER.episode.start, 0.0)
    steps = [simulator.act(U), simulator.act(U)]
    assert [step.tilt_rad for step in steps] == pytest.approx([math.radians(30)] * 2)
    assert not any(step.contact for step in steps)


def test_one_action_can_be_tried_from_a_recorded_step(make: Make):
    records = synthetic.drive(HEADER, [F, L])
    tried = make().act_from(records[1], L)
    assert tried is not None
    assert tried[0].distance_to(records[1].referee.pose) < 1e-6
    assert tried[1].pose.yaw_rad == pytest.approx(records[2].referee.pose.yaw_rad)


def test_it_starts_the_simulator_as_the_task_needs_it(make: Make, modules: dict[str, ModuleType]):
    make(noise=True, platform="CloudRendering", scene="FloorPlan_Train3_2")
    controller = controller_of(modules)
    assert controller.scene == "FloorPlan_Train3_2"
    assert (controller.width, controller.height) == (HEADER.intrinsics.width, HEADER.intrinsics.height)
    assert controller.parameters["applyActionNoise"] is True
    assert controller.parameters["snapToGrid"] is False
    assert controller.platform is modules["ai2thor.platform"].CloudRendering


def test_another_lens_changes_the_resolution(make: Make, modules: dict[str, ModuleType]):
    simulator = make()
    rgb, depth_m = simulator.render(Lens(40, 30, 25, 25, 21.5, 14.5), np.eye(4))
    assert (rgb.shape, depth_m.shape) == ((30, 40, 3), (30, 40))
    assert controller_of(modules).width == 44


def test_a_start_that_is_not_free_is_refused_with_thors_reason(make: Make):
    with raises_naming(InvalidStart, "Collided with: Wall"):
        make().begin(HEADER, SE2(3.0, 0.7, 0.0), 0.0)


def test_what_it_cannot_do_is_said(make: Make):
    header = synthetic.header(synthetic.pointnav_task(magnitudes=Magnitudes(0.25, 30.0, 15.0)), HEADER.episode)
    simulator = make(header)
    simulator.begin(header, header.episode.start, 0.0)
    with raises_naming(UnsupportedBySimulator, "30°", "15°"):
        simulator.act(U)
    with raises_naming(UnsupportedBySimulator, "velocity control"):
        simulator.act(timed.velocity(0.1, 0.0, 0.0, 1.0))
    blind = make(executable="blind")
    with raises_naming(UnsupportedBySimulator, "images"):
        blind.render(Lens.of(HEADER.intrinsics), np.eye(4))


def test_an_action_that_its_build_does_not_know_is_named(
    make: Make, modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
):
    simulator = make()
    monkeypatch.delattr(modules["ai2thor.controller"].Controller.__bases__[0], "do_TeleportFull")
    with raises_naming(UnsupportedBySimulator, "TeleportFull"):
        simulator.begin(HEADER, HEADER.episode.start, 0.0)


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"floor": 3}, ConfigError, "floor"),
        ({"scene": "apartment"}, ConfigError, "apartment"),
        ({"platform": "Amiga"}, ConfigError, "Amiga"),
        ({"executable": "no-build"}, DriverMissing, "executable"),
    ],
)
def test_bad_options_are_named(make: Make, options: dict[str, Any], error: type[RuntimeFault], named: str):
    with raises_naming(error, named):
        make(**options)


@pytest.mark.parametrize("version", ["2.7.2", None])
def test_an_ai2thor_of_another_age_is_refused(version: str | None, monkeypatch: pytest.MonkeyPatch):
    for name, module in ai2thor(version).items():
        monkeypatch.setitem(sys.modules, name, module)
    with raises_naming(DriverMissing, f"ai2thor {version}", 5) as error:
        make_backend(HEADER, None, False, {}, "--into ai2thor")
    assert error.value.remedy == "pip install 'ai2thor>=5'"


def test_without_ai2thor_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ai2thor", None)
    monkeypatch.setitem(sys.modules, "ai2thor.controller", None)
    with raises_naming(DriverMissing, "ai2thor"):
        make_backend(replace(HEADER), None, False, {}, "--into ai2thor")
