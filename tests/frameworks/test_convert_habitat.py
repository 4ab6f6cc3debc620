"""Checkpoints that habitat-baselines itself writes become packages that do what its own policies do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gym import spaces
from habitat.config.default import get_config
from habitat_baselines.config import default_structured_configs as structured
from habitat_baselines.rl.ddppo.policy.resnet_policy import PointNavResNetPolicy
from omegaconf import OmegaConf, open_dict

from robot_runtime.cli.main import run_command
from robot_runtime.policies.convert.checkpoint import read_checkpoint
from robot_runtime.policies.convert.conversion import Options
from robot_runtime.policies.convert.export import export_checkpoint
from robot_runtime.policies.convert.frameworks.habitat import rollout
from robot_runtime.policies.convert.habitat import convert_habitat
from robot_runtime.policies.convert.networks.export import EagerNetwork
from robot_runtime.policies.package.golden import record
from robot_runtime.policies.package.manifest import Manifest
from robot_runtime.policies.package.observations import patchwork
from robot_runtime.policies.package.policy import load_package
from robot_runtime.tasks.task import load_task

PYTHON = Path(sys.executable)
SIDE = 128
POINTNAV = "benchmark/nav/pointnav/pointnav_gibson.yaml"
OBJECTNAV = "benchmark/nav/objectnav/objectnav_hm3d.yaml"


def configuration(benchmark: str, backbone: str, rnn: str, layers: int, hidden: int, side: int) -> Any:
    """Settings of a trainer, saved beside the weights."""
    config = get_config(benchmark)
    baselines = OmegaConf.structured(structured.HabitatBaselinesRLConfig())
    rl = baselines.rl
    rl.ddppo.backbone, rl.ddppo.rnn_type, rl.ddppo.num_recurrent_layers = backbone, rnn, layers
    rl.ppo.hidden_size = hidden
    transforms = rl.policy.main_agent.obs_transforms
    transforms["resize"] = OmegaConf.structured(structured.ResizeShortestEdgeConfig(size=side))
    transforms["crop"] = OmegaConf.structured(structured.CenterCropperConfig(height=side, width=side))
    OmegaConf.set_readonly(config, False)
    with open_dict(config):
        config.habitat_baselines = baselines
    return config


def policy(
    images: Sequence[str],
    goals: Sequence[str],
    actions: int,
    backbone: str,
    rnn: str,
    layers: int,
    hidden: int,
    side: int,
) -> PointNavResNetPolicy:
    """The framework's own, with weights that make all actions occur."""
    boxes: dict[str, spaces.Space] = {
        "rgb": spaces.Box(0, 255, (side, side, 3), np.uint8),
        "depth": spaces.Box(0.0, 1.0, (side, side, 1), np.float32),
        "pointgoal_with_gps_compass": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        "objectgoal": spaces.Box(0, 5, (1,), np.int64),
        "compass": spaces.Box(-np.inf, np.inf, (1,), np.float32),
        "gps": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    }
    torch.manual_seed(3)
    made = PointNavResNetPolicy(
        spaces.Dict({name: boxes[name] for name in (*images, *goals)}),
        spaces.Discrete(actions),
        hidden_size=hidden,
        num_recurrent_layers=layers,
        rnn_type=rnn,
        backbone=backbone,
        normalize_visual_inputs="rgb" in images,
    )
    with torch.no_grad():
        made.action_distribution.linear.weight.mul_(300)
        for name, buffer in made.named_buffers():
            if name.endswith(("_mean", "_var")):
                buffer.uniform_(0.1, 0.5)
    return made.eval()


def difference(path: Path, data: Any, framework: PointNavResNetPolicy, head: float = 1.0) -> tuple[float, Manifest]:
    """Largest difference of logits between the framework and our network before any export; and the manifest."""
    torch.save(data, path)
    conversion = convert_habitat(read_checkpoint(path), Options("MIT", "ours"))
    with torch.no_grad():
        conversion.module.action_distribution.linear.weight.mul_(head)
    eager = EagerNetwork(conversion.manifest, conversion.module)
    golden = record(conversion.manifest, eager, [patchwork(conversion.manifest, seed) for seed in range(4)], (0, 2))
    framework.load_state_dict({name: torch.from_numpy(value) for name, value in conversion.original.tensors.items()})
    inputs = {f"input/{name}": array for name, array in golden.inputs.items()}
    with torch.no_grad():
        theirs = rollout(
            conversion.original.settings, framework, {"first": golden.first, "action": golden.action, **inputs}
        )
    return float(np.abs(theirs["logits"] - golden.outputs["logits"]).max()), conversion.manifest


def test_a_pointnav_checkpoint_becomes_a_proven_package_and_drives(tmp_path: Path) -> None:
    shape = ("resnet50", "LSTM", 2, 512)
    checkpoint = tmp_path / "ckpt.7.pth"
    made = policy(["depth"], ["pointgoal_with_gps_compass"], 4, *shape, SIDE)
    torch.save({"state_dict": made.state_dict(), "config": configuration(POINTNAV, *shape, SIDE)}, checkpoint)
    out = tmp_path / "pointnav.zip"
    arguments = ["--license", "MIT", "--framework-python", str(PYTHON), "--name", "ours"]
    assert run_command(["policy", "export", str(checkpoint), "--out", str(out), *arguments]) == 0
    manifest = load_package(out).manifest
    assert manifest.proof.against.startswith("habitat-baselines 0.3")
    assert (manifest.proof.steps, manifest.proof.same_actions) == (50, 50)
    assert manifest.proof.max_logit_difference <= 1e-4
    camera = manifest.task.camera
    assert (camera.width, camera.height, camera.hfov_deg, camera.height_m) == (256, 256, 90, 1.25)
    assert manifest.selection.mode == "sample"
    assert manifest.sources[0].sha256 == read_checkpoint(checkpoint).sha256
    logs = tmp_path / "logs"
    assert run_command(["run", "--policy", str(out), "--robot", "sim", "--count", "1", "--out", str(logs)]) == 0
    assert len(list(logs.glob("*.mcap"))) == 1


def test_an_rgbd_objectnav_checkpoint_becomes_a_proven_package(tmp_path: Path) -> None:
    shape = ("resnet18", "GRU", 1, 128)
    checkpoint = tmp_path / "ckpt.pth"
    made = policy(["rgb", "depth"], ["objectgoal", "compass", "gps"], 6, *shape, SIDE)
    torch.save({"state_dict": made.state_dict(), "config": configuration(OBJECTNAV, *shape, SIDE)}, checkpoint)
    task = load_task("objectnav_hm3d2022")
    done = export_checkpoint(checkpoint, tmp_path / "out", Options("MIT", "ours", task=task), PYTHON)
    assert [proof.same_actions for proof in done.proofs] == [50, 50]
    manifest = done.package.manifest
    assert [tensor.name for tensor in manifest.inputs[:5]] == ["depth", "rgb", "objectgoal", "compass", "gps"]
    assert manifest.task.camera == task.camera
    assert manifest.task.magnitudes == task.magnitudes
    assert manifest.task.name == task.name
    assert manifest.task.categories["sofa"].id == 5
    assert done.notes == ()


@pytest.mark.parametrize("backbone", ["resneXt50", "se_resneXt50"])
def test_every_kind_of_backbone_is_the_frameworks(backbone: str, tmp_path: Path) -> None:
    shape = (backbone, "LSTM" if "se_" in backbone else "GRU", 2, 32)
    made = policy(["rgb"], ["pointgoal_with_gps_compass"], 4, *shape, SIDE)
    data = {"state_dict": made.state_dict(), "config": configuration(POINTNAV, *shape, SIDE)}
    found, manifest = difference(tmp_path / "ckpt.pth", data, made)
    assert found <= 1e-4
    assert manifest.inputs_of("recurrent_state")[0].shape[1] == (4 if "se_" in backbone else 2)


class Config(dict):  # type: ignore[type-arg]
    """habitat's configuration up to 0.2.2: yacs's node is a dictionary of this kind."""


def test_an_old_rgbd_checkpoint_has_its_channels_in_the_old_order(tmp_path: Path) -> None:
    made = policy(["rgb", "depth"], ["pointgoal_with_gps_compass"], 4, "resnet18", "GRU", 1, 32, SIDE)
    state = made.state_dict()
    for name, value in state.items():  # today's network has depth first, and all of its channels are told apart
        if name.endswith(("conv1.0.weight", "_mean", "_var")) and value.shape[1] == 4:
            state[name] = value[:, [1, 2, 3, 0]]
    sensor = Config(WIDTH=640, HEIGHT=480, HFOV=70, POSITION=[0, 0.88, 0])
    simulator = Config(
        FORWARD_STEP_SIZE=0.25,
        TURN_ANGLE=30,
        RGB_SENSOR=sensor,
        DEPTH_SENSOR=Config(sensor, MIN_DEPTH=0.1, MAX_DEPTH=10.0, NORMALIZE_DEPTH=True),
    )
    task = Config(TYPE="Nav-v0", POSSIBLE_ACTIONS=["STOP", "MOVE_FORWARD", "TURN_LEFT", "TURN_RIGHT"])
    transforms = Config(
        ENABLED_TRANSFORMS=("ResizeShortestEdge", "CenterCropper"),
        RESIZE_SHORTEST_EDGE=Config(SIZE=SIDE),
        CENTER_CROPPER=Config(HEIGHT=SIDE, WIDTH=SIDE),
    )
    config = Config(
        TASK_CONFIG=Config(SIMULATOR=simulator, TASK=task), RL=Config(POLICY=Config(OBS_TRANSFORMS=transforms))
    )
    data = {"state_dict": {f"actor_critic.{name}": value for name, value in state.items()}, "config": config}
    found, manifest = difference(tmp_path / "ckpt.pth", data, made)
    assert found <= 1e-4
    assert [tensor.name for tensor in manifest.inputs[:2]] == ["rgb", "depth"]
    assert manifest.task.camera.hfov_deg == 70


def test_the_comparison_would_find_a_difference(tmp_path: Path) -> None:
    shape = ("resnet18", "GRU", 1, 32)
    made = policy(["depth"], ["pointgoal_with_gps_compass"], 4, *shape, SIDE)
    data = {"state_dict": made.state_dict(), "config": configuration(POINTNAV, *shape, SIDE)}
    assert difference(tmp_path / "ckpt.pth", data, made)[0] <= 1e-4
    assert difference(tmp_path / "ckpt.pth", data, made, head=1.001)[0] > 1e-4
