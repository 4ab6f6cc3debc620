"""Sensors are habitat-lab's own, and the kernel of torchvision's ``Resize`` is torchvision's."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import quaternion
from habitat.tasks.eqa.eqa import QuestionSensor
from habitat.tasks.nav.nav import HeadingSensor, IntegratedPointGoalGPSAndCompassSensor, PointGoalSensor
from habitat.tasks.vln.vln import InstructionSensor

from robot_runtime.common.geometry import SE2
from robot_runtime.hal import RgbdFrame
from robot_runtime.imaging.kernels import torch_antialias
from robot_runtime.policies.agents.habitat import HabitatInterface
from robot_runtime.sensors import ObservationBuilder
from robot_runtime.task_kinds.pointnav.kind import PointGoal
from robot_runtime.tasks.task import load_task

START, ROBOT, GOAL, GOAL_UP_M = SE2(1.0, 2.0, math.radians(90)), SE2(0.0, 5.0, math.radians(120)), (-2.0, 6.0), -0.1
TASK = load_task("pointnav_gps_compass")
FRAME = RgbdFrame(0, np.zeros((480, 640, 3), np.uint8), np.ones((480, 640), np.float32))


def in_habitat(pose: SE2) -> SimpleNamespace:
    """A pose of ROS in habitat-sim's axes: x right, y up, z backward."""
    half = pose.yaw_rad / 2
    rotation = quaternion.quaternion(math.cos(half), 0.0, math.sin(half), 0.0)
    return SimpleNamespace(position=np.array([-pose.y_m, 0.0, -pose.x_m]), rotation=rotation)


def their_value(sensor: Any, **config: Any) -> Any:
    start = in_habitat(START)
    made = sensor(sim=SimpleNamespace(get_agent_state=lambda: in_habitat(ROBOT)), config=SimpleNamespace(**config))
    q = start.rotation
    episode = SimpleNamespace(
        start_position=start.position,
        start_rotation=[q.x, q.y, q.z, q.w],
        goals=[SimpleNamespace(position=[-GOAL[1], GOAL_UP_M, -GOAL[0]])],
    )
    return made.get_observation(observations={}, episode=episode)


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("form", ["polar", "cartesian"])
def test_point_goals_of_every_form_are_habitat_labs(form: Any, dimensions: Any) -> None:
    names = {"pointgoal": PointGoalSensor, "pointgoal_with_gps_compass": IntegratedPointGoalGPSAndCompassSensor}
    task = replace(TASK, sensors=tuple(names), pointgoal_format=form, pointgoal_dimensions=dimensions)
    goal = PointGoal(*START.inverse().apply(*GOAL), GOAL_UP_M)
    seen = ObservationBuilder(task, START, goal).build(FRAME, ROBOT)
    for name, sensor in names.items():
        theirs = their_value(sensor, goal_format=form.upper(), dimensionality=dimensions)
        np.testing.assert_allclose(seen[name], theirs, atol=1e-5)


def test_the_heading_is_habitat_labs() -> None:
    builder = ObservationBuilder(replace(TASK, sensors=("heading",)), SE2(), origin=START)
    seen = builder.build(FRAME, ROBOT.relative_to(START))
    np.testing.assert_allclose(seen["heading"], their_value(HeadingSensor), atol=1e-6)


def test_words_have_habitat_labs_form() -> None:
    told = SimpleNamespace(
        instruction=SimpleNamespace(instruction_text="Go.", instruction_tokens=[7, 3, 0]), trajectory_id=4
    )
    theirs = InstructionSensor().get_observation(observations={}, episode=told)
    shown = {"instruction": np.array("Go."), "instruction_tokens": np.array([7, 3, 0])}
    ours = HabitatInterface("agent", {}).agent_observation(shown, load_task("vln_r2r_ce"))["instruction"]
    assert ours == {key: theirs[key] for key in ("text", "tokens")}
    asked = SimpleNamespace(question=SimpleNamespace(question_tokens=[0, 4]))
    sensor = QuestionSensor.__new__(QuestionSensor)
    shown = {"question": np.array("Why?"), "question_tokens": np.array([0, 4, -1])}
    ours = HabitatInterface("agent", {}).agent_observation(shown, load_task("eqa_embodied"))
    assert ours["question"] == sensor.get_observation({}, asked)
    assert ours["question_text"] == "Why?"


RESIZE = """
import sys, numpy, torch
lib = torch.library.Library("torchvision", "DEF")  # its compiled operators miss torch's CPU build
lib.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
lib.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from torchvision.transforms import functional, v2
given = torch.from_numpy(numpy.load(sys.argv[1])).permute(2, 0, 1)
made = [functional.resize(given, [64, 85], antialias=True), v2.functional.resize(given, [64, 85], antialias=True)]
numpy.save(sys.argv[2], torch.stack([*made, v2.functional.resize(given.float(), [64, 85])]).permute(0, 2, 3, 1).numpy())
"""


def test_torchvisions_resize_of_a_tensor_is_the_antialiased_kernel(tmp_path: Path) -> None:
    """In a process of its own: here, torchvision is a stand-in that habitat-baselines can import."""
    image = np.random.default_rng(0).integers(0, 256, (120, 160, 3), np.uint8)
    np.save(tmp_path / "given.npy", image)
    command = [sys.executable, "-c", RESIZE, str(tmp_path / "given.npy"), str(tmp_path / "made.npy")]
    subprocess.run(command, check=True, capture_output=True)
    first, second, floats = np.load(tmp_path / "made.npy")
    ours = torch_antialias(image, 64, 85)
    np.testing.assert_array_equal(ours, second)
    assert np.abs(ours - first).max() <= 1, "the first version of transforms rounds results of float"
    np.testing.assert_allclose(torch_antialias(image.astype(np.float32), 64, 85), floats, rtol=1e-6, atol=1e-4)
