"""habitat-baselines' policy over a recorded rollout. Run by an interpreter that has it: ``python habitat.py FOLDER``.

Imports torch, numpy and the framework and nothing of this project, so that errors cannot be shared. Reads
``settings.json``, ``weights.npz`` and ``rollout.npz`` in the folder, writes ``outputs.npz`` and ``about.json``.
"""

import json
import sys
import types
from collections import OrderedDict
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

_OBSERVED = {"pointgoal_with_gps_compass": 2, "pointgoal": 2, "objectgoal": 1, "compass": 1, "gps": 2}


def seed_modules():
    """Put empty modules where habitat imports a simulator, trainers or torchvision that the policy never uses."""

    def module(name, **contents):
        made = types.ModuleType(name)
        made.__dict__.update(contents)
        sys.modules[name] = made
        return made

    def unused(*_, **__):
        raise RuntimeError("not in this process")

    module("habitat.sims.habitat_simulator.object_state_machine", ObjectStateMachine=object)
    rearrange = module("habitat.tasks.rearrange", _try_register_rearrange_task=lambda: None)
    rearrange.__path__ = []
    module("habitat.tasks.rearrange.rearrange_sim", add_perf_timing_func=lambda name=None: lambda function: function)
    module("habitat.core.batch_rendering.env_batch_renderer", EnvBatchRenderer=object)
    goal = type("InstanceImageGoalSensor", (), {"cls_uuid": "instance_imagegoal"})
    module("habitat.tasks.nav.instance_image_nav_task", InstanceImageGoalSensor=goal)
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        module("torch.utils.tensorboard", SummaryWriter=object)
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        vision = module("torchvision")
        vision.transforms = module("torchvision.transforms", Compose=unused)
        vision.transforms.functional = module("torchvision.transforms.functional", resize=unused)
    import habitat

    baselines = types.ModuleType("habitat_baselines")  # its own __init__ imports every trainer
    baselines.__path__ = [str(Path(habitat.__file__).parent.parent / "habitat_baselines")]
    sys.modules["habitat_baselines"] = baselines


def observation_space(settings):
    """Task and sensors for which the network is built, from the settings."""
    from gym import spaces

    size = (settings["height"], settings["width"])
    boxes = {}
    if "rgb" in settings["images"]:
        boxes["rgb"] = spaces.Box(0, 255, (*size, 3), np.uint8)
    if "depth" in settings["images"]:
        boxes["depth"] = spaces.Box(0.0, 1.0, (*size, 1), np.float32)
    for sensor in settings["sensors"]:
        if sensor == "objectgoal":
            boxes[sensor] = spaces.Box(0, settings["categories"] - 1, (1,), np.int64)
        else:
            boxes[key_of(settings, sensor)] = spaces.Box(-np.inf, np.inf, (_OBSERVED[sensor],), np.float32)
    return spaces.Dict(boxes)


def key_of(settings, sensor):
    """The framework's key; before 0.1.5 ``tgt_embeding`` could belong to either point goal."""
    return "pointgoal_with_gps_compass" if sensor == settings["polar"] else sensor


def build(settings):
    """The policy."""
    from gym import spaces
    from habitat_baselines.rl.ddppo.policy.resnet_policy import PointNavResNetPolicy

    names = ("hidden_size", "num_recurrent_layers", "rnn_type", "resnet_baseplanes", "backbone")
    return PointNavResNetPolicy(
        observation_space(settings),
        spaces.Discrete(settings["actions"]),
        normalize_visual_inputs=settings["normalize_visual_inputs"],
        **{name: settings[name] for name in names},
    )


def transform(settings, sensors):
    """The images of raw observations as the framework's own transformers give them."""
    from habitat_baselines.common.obs_transformers import CenterCropper, ResizeShortestEdge

    shown = {key: torch.from_numpy(array) for key, array in sensors.items() if key in settings["images"]}
    for step in settings["transforms"]:
        keys = tuple(step["keys"])
        if step["op"] == "resize_shortest_edge":
            shown = ResizeShortestEdge(step["size"], True, keys)(shown)
        elif step["op"] == "center_crop":
            shown = CenterCropper((step["height"], step["width"]), True, keys)(shown)
        elif step["op"] == "cast":
            shown.update({key: shown[key].to(getattr(torch, step["dtype"])) for key in keys})
    return {f"prepared/{key}": array.numpy() for key, array in shown.items()}


def rollout(settings, policy, data):
    """Logits, values and the last state."""
    state = torch.zeros(1, policy.num_recurrent_layers, policy.recurrent_hidden_size)
    previous = torch.zeros(1, 1, dtype=torch.long)
    logits, values = [], []
    for step, first in enumerate(data["first"]):
        if first:
            state, previous = torch.zeros_like(state), torch.zeros_like(previous)
        shown = {
            key_of(settings, key): torch.from_numpy(data[f"input/{key}"][step])
            for key in (*settings["images"], *settings["sensors"])
        }
        mask = torch.full((1, 1), not first)
        features, state, _ = policy.net(shown, state, previous, mask)
        logits.append(policy.action_distribution.linear(features).numpy())
        values.append(policy.critic(features).numpy())
        previous = torch.full((1, 1), int(data["action"][step]))
    return {"logits": np.stack(logits), "value": np.stack(values), "state": state.numpy()}


def main(folder):
    """Read FOLDER, run the policy and write the results."""
    torch.set_num_threads(1)
    seed_modules()
    settings = json.loads((folder / "settings.json").read_text())
    data = dict(np.load(folder / "rollout.npz", allow_pickle=False))
    weights = np.load(folder / "weights.npz", allow_pickle=False)
    with torch.no_grad():
        policy = build(settings)
        policy.load_state_dict(OrderedDict((name, torch.from_numpy(weights[name])) for name in weights.files))
        policy.eval()
        sensors = {name[len("sensor/") :]: array for name, array in data.items() if name.startswith("sensor/")}
        outputs = {**rollout(settings, policy, data), **transform(settings, sensors)}
    np.savez(folder / "outputs.npz", **outputs)
    about = f"habitat-baselines {version('habitat-baselines')} (PointNavResNetPolicy), torch {torch.__version__}"
    (folder / "about.json").write_text(json.dumps({"about": about}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
