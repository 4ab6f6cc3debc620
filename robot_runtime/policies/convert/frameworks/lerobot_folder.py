"""Network of a LeRobot policy's folder. Run by an interpreter that has it: ``python lerobot_folder.py FOLDER``.

Imports nothing of this project. Reads ``settings.json`` in the folder and, if it is there, ``rollout.npz``, for whose
inputs it writes ``outputs.npz``; without it, it exports ``model.onnx``. Writes ``about.json``, too.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from lerobot import __version__ as version
from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies.factory import get_policy_class, make_pre_post_processors


class Deciding(torch.nn.Module):
    """A chunk of actions, with the normalization of inputs and actions that the folder declares."""

    def __init__(self, path):
        super().__init__()
        self.config = PreTrainedConfig.from_pretrained(path)
        self.config.device = "cpu"
        if hasattr(self.config, "pretrained_backbone_weights"):
            self.config.pretrained_backbone_weights = None  # they are in the folder, and would be downloaded
        self.policy = get_policy_class(self.config.type).from_pretrained(path, config=self.config).eval()
        on_cpu = {"device_processor": {"device": "cpu"}}
        self.before, self.after = make_pre_post_processors(self.config, path, preprocessor_overrides=on_cpu)

    def forward(self, *values):
        """The actions (1, chunk, numbers) for features in the order of the configuration."""
        shown = self.before(dict(zip(self.config.input_features, values, strict=True)))
        return self.after(self.policy.predict_action_chunk(shown))


def main(folder):
    """Read FOLDER and write the results."""
    torch.set_num_threads(1)
    module = Deciding(json.loads((folder / "settings.json").read_text())["policy"])
    config, features = module.config, module.config.input_features
    names = {feature: feature.replace(".", "_") for feature in features}
    shapes = {names[feature]: tuple(kind.shape) for feature, kind in features.items()}
    with torch.no_grad():
        examples = tuple(torch.rand(1, *shape) for shape in shapes.values())
        remembers = config.n_obs_steps > 1 or getattr(config, "temporal_ensemble_coeff", None) is not None
        if remembers or not torch.equal(module(*examples), module(*examples)):
            sys.exit(f"{config.type}: remembers, or is not deterministic: run it as an agent that answers chunks")
        if (folder / "rollout.npz").exists():
            data = np.load(folder / "rollout.npz", allow_pickle=False)
            shown = [
                [torch.from_numpy(data[f"input/{name}"][step]) for name in shapes] for step in range(len(data["first"]))
            ]
            np.savez(folder / "outputs.npz", logits=np.stack([module(*values).numpy() for values in shown]))
        else:
            ports = {"input_names": list(shapes), "output_names": ["action"]}
            torch.onnx.export(module, examples, folder / "model.onnx", dynamo=True, verbose=False, **ports)
    images = {name: {"role": "rgb"} for name, shape in shapes.items() if len(shape) == 3 and shape[0] == 3}
    fields = {
        **{name: {"role": ""} for name in shapes},
        **images,
        "action": {"role": ""},
        "carry_out": config.n_action_steps,
    }
    about = f"lerobot {version} ({config.type}), torch {torch.__version__}"
    (folder / "about.json").write_text(json.dumps({"about": about, "fields": {**fields, "rgb": "unit"}}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
