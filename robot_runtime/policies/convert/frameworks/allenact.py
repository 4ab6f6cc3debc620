"""AllenAct's policy over a recorded rollout. Run by an interpreter that has it: ``python allenact.py FOLDER``.

Imports torch, torchvision, numpy and the framework and nothing of this project, so that errors cannot be shared. Reads
``settings.json``, ``weights.npz`` and ``rollout.npz`` in the folder, writes ``outputs.npz`` and ``about.json``.
"""

import importlib.machinery
import importlib.util
import json
import sys
import types
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

_UNUSED = ("wandb", "tensorboardX", "setproctitle", "moviepy", "networkx", "matplotlib")


class _Placeholder(types.ModuleType):
    """Placeholder of a trainer's module that no policy uses; every attribute is a class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _PlaceholderFinder:
    """Finder of placeholders for all modules of packages that are not installed."""

    def __init__(self, roots):
        self.roots = roots

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.roots:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _Placeholder(spec.name)

    def exec_module(self, module):
        pass


def seed_modules():
    """Make torchvision importable next to a torch of another build, and leave the trainer's tools out."""
    sys.meta_path.append(_PlaceholderFinder({name for name in _UNUSED if importlib.util.find_spec(name) is None}))
    library = None
    try:
        import torchvision  # noqa: F401
    except RuntimeError:  # built for another torch: its compiled operators are missing, which no ResNet uses
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.distributions.Distribution.set_default_validate_args(False)
    return library


def build(settings):
    """The policy and its preprocessor's backbone."""
    import gym
    from allenact_plugins.navigation_plugin.objectnav.models import ResnetTensorNavActorCritic

    shape = (settings["features"], 7, 7)
    images = settings["images"]
    spaces = {f"{image}_resnet": gym.spaces.Box(-np.inf, np.inf, shape) for image in images}
    spaces["goal"] = gym.spaces.Discrete(settings["categories"])
    return ResnetTensorNavActorCritic(
        gym.spaces.Discrete(settings["actions"]),
        gym.spaces.Dict(spaces),
        "goal",
        rgb_resnet_preprocessor_uuid="rgb_resnet" if "rgb" in images else None,
        depth_resnet_preprocessor_uuid="depth_resnet" if "depth" in images else None,
        resnet_compressor_hidden_out_dims=tuple(settings["compressor"]),
        combiner_hidden_out_dims=tuple(settings["combiner"]),
        **settings["arguments"],
    )


def embedder(settings):
    """The frozen backbone in the framework's own wrapping, and the part of it that has the weights."""
    if settings["backbone"] == "clip_rn50":
        from allenact_plugins.clip_plugin.clip_preprocessors import ClipResNetEmbedder
        from clip.model import CLIP

        # RN50's visual part (clip/model.py, build_model), and a small placeholder of its text part, which is not used.
        text = {"context_length": 1, "vocab_size": 1, "transformer_width": 8, "transformer_heads": 1}
        model = CLIP(1024, 224, (3, 4, 6, 3), 64, None, transformer_layers=1, **text)
        return ClipResNetEmbedder(model, pool=False), model.visual
    from allenact.embodiedai.preprocessors.resnet import ResNetEmbedder
    from torchvision import models

    embedding = ResNetEmbedder(getattr(models, settings["backbone"])(weights=None), pool=False)
    return embedding, embedding.model


def load(module, weights, prefix):
    """Parameters by name, every one; a classifier is not among them."""
    found = {name[len(prefix) :]: torch.from_numpy(weights[name]) for name in weights.files if name.startswith(prefix)}
    left = module.load_state_dict(found, strict=False)
    assert not left.unexpected_keys, left
    assert all(name.startswith("fc.") for name in left.missing_keys), left


def transform(settings, sensors):
    """The images of raw observations as the framework's own sensors give them."""
    from allenact.embodiedai.sensors.vision_sensors import DepthSensor, RGBSensor

    class Rgb(RGBSensor):
        def frame_from_env(self, env, task):
            return env

    class Depth(DepthSensor):
        def frame_from_env(self, env, task):
            return env

    mean, std = settings["mean"], settings["std"]
    made = {}
    if "rgb" in settings["images"]:
        rgb = Rgb(True, tuple(mean), tuple(std), height=224, width=224)
        made["prepared/rgb"] = np.stack([rgb.get_observation(frame, None) for frame in sensors["rgb"]])
    if "depth" in settings["images"]:
        from torchvision.transforms import ToPILImage

        depth = Depth(True, height=224, width=224, scale_first=False)  # as DepthSensorThor
        depth.to_pil = ToPILImage("F")  # as torchvision did by itself for float arrays when AllenAct was written
        made["prepared/depth"] = np.stack([depth.get_observation(frame[..., 0], None) for frame in sensors["depth"]])
    return made


def rollout(settings, policy, embedding, data):
    """Logits, values and the last state."""
    from allenact.base_abstractions.misc import Memory

    state, previous = None, torch.zeros(1, 1, dtype=torch.long)
    logits, values = [], []
    # Its distribution has normalized logits; the rollout holds those of the head.
    policy.actor.linear.register_forward_hook(lambda module, inputs, made: logits.append(made[0].numpy()))
    for step, first in enumerate(data["first"]):
        if first:
            state = torch.zeros(policy.num_recurrent_layers, 1, policy.recurrent_hidden_state_size)
            previous = torch.zeros_like(previous)
        observations = {"goal": torch.from_numpy(data["input/objectgoal"][step]).view(1, 1)}
        for image in settings["images"]:
            planes = torch.from_numpy(data[f"input/{image}"][step]).permute(0, 3, 1, 2)
            planes = planes.repeat(1, 3 // planes.shape[1], 1, 1)
            observations[f"{image}_resnet"] = embedding(planes).unsqueeze(0)
        memory = Memory([("single_belief", (state, 1))])
        output, memory = policy(observations, memory, previous, torch.full((1, 1, 1), float(not first)))
        state = memory.tensor("single_belief")
        values.append(output.values[0].numpy())
        previous = torch.full((1, 1), int(data["action"][step]))
    return {"logits": np.stack(logits), "value": np.stack(values), "state": state.numpy()}


def main(folder):
    """Read FOLDER, run the policy and write the results."""
    torch.set_num_threads(1)
    library = seed_modules()
    settings = json.loads((folder / "settings.json").read_text())
    data = dict(np.load(folder / "rollout.npz", allow_pickle=False))
    weights = np.load(folder / "weights.npz", allow_pickle=False)
    with torch.no_grad():
        policy = build(settings)
        embedding, backbone = embedder(settings)
        load(policy, weights, "policy/")
        load(backbone, weights, "backbone/")
        policy.eval()
        embedding.eval()
        sensors = {name[len("sensor/") :]: array for name, array in data.items() if name.startswith("sensor/")}
        outputs = {**rollout(settings, policy, embedding, data), **transform(settings, sensors)}
    np.savez(folder / "outputs.npz", **outputs)
    backbone_name = " on CLIP's RN50" if settings["backbone"] == "clip_rn50" else ""
    about = f"AllenAct {version('allenact')} (ResnetTensorNavActorCritic{backbone_name}), torch {torch.__version__}"
    (folder / "about.json").write_text(json.dumps({"about": about}))
    del library


if __name__ == "__main__":
    main(Path(sys.argv[1]))
