"""Conversion of checkpoints to packages, without the frameworks."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.errors import CheckpointError
from robot_runtime.imaging.preprocess import Cast, CenterCrop, ResizeShortestEdge
from robot_runtime.policies.convert.checkpoint import family_of, read_checkpoint
from robot_runtime.policies.convert.conversion import Conversion, Options
from robot_runtime.policies.convert.export import export_checkpoint
from robot_runtime.policies.convert.habitat import convert_habitat
from robot_runtime.policies.convert.networks.allenact import AllenactConfig, AllenactPolicy
from robot_runtime.policies.convert.networks.ddppo import DdppoConfig, DdppoPolicy
from robot_runtime.policies.package.policy import load_package
from robot_runtime.tasks.task import load_task

SIDE = 128
SMALL = DdppoConfig("resnet18", "GRU", 1, 16, SIDE, SIDE, base_planes=8)
OBJECTNAV = replace(
    SMALL, images=("rgb", "depth"), sensors=("objectgoal", "compass", "gps"), categories=6, actions=6, normalize=True
)
OPTIONS = Options("MIT", "ours")
CARTESIAN = {"type": "PointGoalWithGPSCompassSensor", "goal_format": "CARTESIAN"}


def sensor(**more: Any) -> dict[str, Any]:
    return {"width": 640, "height": 480, "hfov": 79, "position": [0, 0.88, 0], "orientation": [0.0, 0.0, 0.0], **more}


def hydra(actions: str = "stop move_forward turn_left turn_right", **more: Any) -> dict[str, Any]:
    """A configuration from 0.2.3 on, as plain dictionaries."""
    sensors = {"rgb_sensor": sensor(), "depth_sensor": sensor(min_depth=0.1, max_depth=10.0, normalize_depth=True)}
    transforms = {
        "crop": {"type": "CenterCropper", "height": 256, "width": 256, "trans_keys": ["rgb", "depth"]},
        "resize": {"type": "ResizeShortestEdge", "size": SIDE, "trans_keys": ["rgb", "depth"]},
    }
    return {
        "habitat": {
            "simulator": {
                "forward_step_size": 0.25,
                "turn_angle": 10,
                "agents": {"main_agent": {"radius": 0.2, "sim_sensors": sensors}},
            },
            "task": {"type": "Nav-v0", "actions": {name: {"type": name} for name in actions.split()}, **more},
            "environment": {"max_episode_steps": 321},
        },
        "habitat_baselines": {"rl": {"policy": {"main_agent": {"obs_transforms": transforms}}}},
    }


def yacs(sensors: dict[str, Any], **policy: Any) -> dict[str, Any]:
    """A configuration to 0.2.2."""
    simulator = {"FORWARD_STEP_SIZE": 0.25, "TURN_ANGLE": 10, "RGB_SENSOR": sensors, "DEPTH_SENSOR": sensors}
    task = {"TYPE": "Nav-v0", "POSSIBLE_ACTIONS": ["STOP", "MOVE_FORWARD", "TURN_LEFT", "TURN_RIGHT"]}
    return {"TASK_CONFIG": {"SIMULATOR": simulator, "TASK": task}, "RL": {"POLICY": policy}}


@pytest.fixture
def convert(tmp_path: Path) -> Callable[..., Conversion]:
    def make(network: DdppoConfig, config: Any = None, options: Options = OPTIONS, **tensors: Any) -> Conversion:
        torch.manual_seed(0)
        state = {**DdppoPolicy(network).state_dict(), **{name.replace("__", "."): t for name, t in tensors.items()}}
        path = tmp_path / "ckpt.pth"
        kept = {name: value for name, value in state.items() if value is not None}
        torch.save({"state_dict": kept, **({} if config is None else {"config": config})}, path)
        return convert_habitat(read_checkpoint(path), options)

    return make


def test_the_task_is_read_from_the_configuration(convert: Callable[..., Conversion]) -> None:
    manifest = convert(SMALL, hydra()).manifest
    task = manifest.task
    assert (task.kind, task.magnitudes.turn_deg, task.robot_radius_m, task.max_steps) == ("pointnav", 10, 0.2, 321)
    assert (task.camera.width, task.camera.hfov_deg, task.camera.depth_max_m) == (640, 79, 10)
    assert manifest.preprocess == (
        CenterCrop(("depth",), 256, 256),
        ResizeShortestEdge(("depth",), SIDE, "torch_area"),
    ), "in the configuration's order"


def test_the_dialect_determines_the_order_of_channels(convert: Callable[..., Conversion]) -> None:
    network = replace(SMALL, images=("rgb", "depth"))
    eye = {"WIDTH": SIDE, "HEIGHT": SIDE, "HFOV": 90}
    for config, order in ((hydra(), ["depth", "rgb"]), (yacs(eye, OBS_TRANSFORMS={}), ["rgb", "depth"])):
        manifest = convert(network, config).manifest
        assert [tensor.name for tensor in manifest.inputs[:2]] == order
    task = replace(load_task("pointnav_gps_compass"), camera=convert(network, yacs(eye)).manifest.task.camera)
    with raises_naming(CheckpointError, "--channel-order"):
        convert(network, None, replace(OPTIONS, task=task))
    manifest = convert(network, None, replace(OPTIONS, task=task, channel_order="rgb_depth")).manifest
    assert [tensor.name for tensor in manifest.inputs[:2]] == ["rgb", "depth"]


def test_the_network_of_0_1_5_resizes_by_itself(convert: Callable[..., Conversion]) -> None:
    network = replace(SMALL, images=("rgb",), height=256, width=256)
    eye = {"WIDTH": 640, "HEIGHT": 480, "HFOV": 90}
    manifest = convert(network, yacs(eye)).manifest
    assert [type(step) for step in manifest.preprocess] == [Cast, ResizeShortestEdge, CenterCrop]
    assert manifest.inputs[0].dtype == "float32"
    assert convert(network, yacs({**eye, "WIDTH": 256, "HEIGHT": 256})).manifest.preprocess == ()


def test_the_given_task_only_fills_missing_facts(convert: Callable[..., Conversion]) -> None:
    config = hydra("stop move_forward turn_left turn_right look_up look_down", type="ObjectNav-v1")
    network = replace(OBJECTNAV, images=("depth", "rgb"))
    conversion = convert(network, config, replace(OPTIONS, task=load_task("objectnav_hm3d2022")))
    assert conversion.manifest.task.camera.depth_max_m == 10.0
    assert [*conversion.manifest.task.categories][:2] == ["chair", "bed"]
    assert any("camera.depth_max_m 10.0, objectnav_hm3d2022 has 5.0" in note for note in conversion.notes)
    assert not any("embeds" in note for note in conversion.notes)
    for task, things in ((None, ("6", "--task")), ("objectnav_habitat2020", ("6", "objectnav_habitat2020", "21"))):
        options = replace(OPTIONS, task=load_task(task) if task else None)
        with raises_naming(CheckpointError, *things):
            convert(network, config, options)


def test_the_baseline_of_2022_embeds_more_categories_than_its_task_uses(convert: Callable[..., Conversion]) -> None:
    task = load_task("objectnav_hm3d2022")
    network = replace(OBJECTNAV, categories=21)
    options = replace(
        OPTIONS, task=task, channel_order="rgb_depth", transforms=(CenterCrop(("rgb", "depth"), 128, 128),)
    )
    conversion = convert(network, None, options)
    assert conversion.manifest.task.categories == task.categories
    assert conversion.original.settings["categories"] == 21
    (note,) = conversion.notes
    assert "embeds 21 categories" in note
    assert "ids 0, 1, 2, 3, 4, 5" in note


@pytest.mark.slow
def test_what_a_pickle_asked_for_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out, marker = tmp_path / "ckpt.pth", tmp_path / "out.zip", tmp_path / "marker"

    class Bite:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {marker}",)

    torch.manual_seed(1)
    torch.save({"state_dict": DdppoPolicy(SMALL).state_dict(), "config": hydra(), "extra": Bite()}, path)
    arguments = ["--license", "MIT", "--name", "ours", "--steps", "2", "--format", "torchscript"]
    assert run_command(["policy", "export", str(path), "--out", str(out), *arguments]) == 0
    assert "asks for posix.system, which no network needs: it was not called" in capsys.readouterr().out
    assert not marker.exists()


@pytest.mark.parametrize(
    ("network", "config", "tensors", "things"),
    [
        (SMALL, hydra(), {"critic__fc__bias": None}, ("critic.fc.bias",)),
        (SMALL, hydra(), {"net__extra": torch.zeros(1)}, ("net.extra",)),
        (SMALL, hydra(), {"critic__fc__weight": torch.zeros(1, 17)}, ("critic.fc.weight", "[1, 17]")),
        (SMALL, hydra(), {"critic__fc__bias": torch.tensor([math.nan])}, ("critic.fc.bias", "1")),
        (SMALL, hydra(), {"net__heading_embedding__weight": torch.zeros(32, 2)}, ("heading",)),
        (SMALL, hydra(), {"action_distribution__mu__weight": torch.zeros(1)}, ("continuous actions",)),
        (SMALL, hydra(), {"net__tgt_embeding__weight": None, "net__tgt_embeding__bias": None}, ("ckpt.pth", "goal")),
        (replace(SMALL, height=256, width=256), hydra(), {}, ("visual_encoder",)),
        (SMALL, hydra("stop move_forward turn_left"), {}, ("4", "3", "turn_left")),
        (SMALL, hydra("stop move_forward turn_left velocity_control"), {}, ("'velocity_control'",)),
        (SMALL, hydra(type="RearrangePick-v0"), {}, ("RearrangePick-v0",)),
        (SMALL, hydra(lab_sensors={"goal": CARTESIAN}), {}, ("CARTESIAN", "2")),
        (SMALL, None, {}, ("configuration", "--task")),
        (SMALL, {"something": 1}, {}, ("'habitat'", "'TASK_CONFIG'")),
    ],
)  # fmt: skip
def test_inconsistent_checkpoints_are_refused(
    convert: Callable[..., Conversion],
    network: DdppoConfig,
    config: Any,
    tensors: dict[str, Any],
    things: tuple[str, ...],
) -> None:
    with raises_naming(CheckpointError, *things):
        convert(network, config, **tensors)


def test_transformers_and_trainings_that_are_not_known_are_refused(convert: Callable[..., Conversion]) -> None:
    config = hydra()
    policy = config["habitat_baselines"]["rl"]["policy"]["main_agent"]
    policy["obs_transforms"]["crop"] = {"type": "CubeMap2Fisheye"}
    with raises_naming(CheckpointError, "CubeMap2Fisheye"):
        convert(SMALL, config)
    config = hydra()
    config["habitat_baselines"]["rl"]["ddppo"] = {"backbone": "resnet50"}
    with raises_naming(CheckpointError, "backbone", "resnet50", "resnet18"):
        convert(SMALL, config)


@pytest.mark.slow
def test_the_family_is_detected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ckpt.pt"
    torch.save({"weights": {"a": torch.zeros(1)}}, path)
    with raises_naming(CheckpointError, "weights", path):
        family_of(read_checkpoint(path))
    with raises_naming(CheckpointError, "without the network's code", "torch.onnx.export"):
        export_checkpoint(path, tmp_path / "out", OPTIONS)
    torch.export.save(torch.export.export(torch.nn.Linear(2, 2), (torch.zeros(1, 2),)), path.with_suffix(".pt2"))
    path = path.with_suffix(".pt2")
    with raises_naming(CheckpointError, "is a network", f"robot-runtime policy package {path}"):
        export_checkpoint(path, tmp_path / "out", OPTIONS)
    path = tmp_path / "ckpt.pt"
    torch.save({"model_state_dict": {"a": torch.zeros(1)}}, path)
    arguments = ["policy", "export", str(path), "--out", str(tmp_path / "out"), "--license", "MIT"]
    assert run_command([*arguments, "--family", "habitat"]) == 9
    assert "is a checkpoint of AllenAct" in capsys.readouterr().err
    assert run_command(["run", "--policy", str(path)]) == 9
    assert f"robot-runtime policy export {path}" in capsys.readouterr().err
    assert run_command(arguments) == 9
    assert "do not hold the frozen backbone" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_converted_policy_drives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out, logs = tmp_path / "ckpt.pth", tmp_path / "out.zip", tmp_path / "logs"
    torch.manual_seed(1)
    state = {f"actor_critic.{name}": value for name, value in DdppoPolicy(SMALL).state_dict().items()}
    torch.save({"state_dict": state, "config": hydra()}, path, _use_new_zipfile_serialization=False)
    arguments = ["--license", "MIT", "--name", "ours", "--steps", "6"]
    assert run_command(["policy", "export", str(path), "--out", str(out), *arguments]) == 0
    assert "the same action at 6 of 6 steps" in capsys.readouterr().out
    manifest = load_package(out).manifest
    assert manifest.proof.against.startswith("our own definition")
    assert run_command(["run", "--policy", str(out), "--robot", "fake", "--count", "1", "--out", str(logs)]) == 0
    assert run_command(["policy", "diff", str(out), str(logs)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("images", [("depth",), ("rgb", "depth")])
def test_allenacts_own_names_are_read(images: tuple[Any, ...], tmp_path: Path) -> None:
    network = AllenactConfig(images=images, previous=7, previous_size=6, hidden=32)
    torch.manual_seed(2)
    state = AllenactPolicy(network).state_dict()
    backbone = {name.removeprefix("backbone."): t for name, t in state.items() if name.startswith("backbone.")}
    torch.save({**backbone, "fc.weight": torch.zeros(3, 512)}, tmp_path / "resnet18.pth")
    old = {"state_encoders.single_belief.": "state_encoder.", "encoder.embed_goal.": "encoder.embed_class."}
    for new, name in old.items():
        state = {key.replace(new, name): value for key, value in state.items() if not key.startswith("backbone.")}
    path = tmp_path / "ckpt.pt"
    torch.save({"model_state_dict": state, "total_steps": 5}, path)
    options = Options(
        "MIT",
        "ours",
        task=load_task("objectnav_robothor2021"),
        format="torchscript",
        steps=4,
        image=images[0],
        backbone=tmp_path / "resnet18.pth",
    )
    done = export_checkpoint(path, tmp_path / "out", options)
    assert done.package.agreement.same_actions == 4
    assert done.package.manifest.needs == (*images, "objectgoal")
    with raises_naming(CheckpointError, "resnet18.pth", "0" * 64):
        export_checkpoint(path, tmp_path / "out", replace(options, backbone_sha256="0" * 64))
