"""Network of a Stable-Baselines3 zip. Run by an interpreter that has it: ``python sb3_zip.py FOLDER``.

Imports nothing of this project. Reads ``settings.json`` in the folder and, if it is there, ``rollout.npz``, for whose
inputs it writes ``outputs.npz``; without it, it exports ``model.onnx``. Writes ``about.json``, too.
"""

import json
import sys
from pathlib import Path

import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.dqn.policies import DQNPolicy


class Deciding(torch.nn.Module):
    """The basis of ``predict(..., deterministic=True)``: logits, values of actions, or the numbers of an action."""

    def __init__(self, policy, names):
        super().__init__()
        self.policy, self.names = policy, names

    def forward(self, *values):
        """The answer to observations by name, or to a single one."""
        policy, space = self.policy, self.policy.action_space
        shown = (
            dict(zip(self.names, values, strict=True))
            if isinstance(policy.observation_space, spaces.Dict)
            else values[0]
        )
        if isinstance(policy, DQNPolicy):
            return policy.q_net(shown)
        if isinstance(policy, ActorCriticPolicy):
            features = BasePolicy.extract_features(policy, shown, policy.pi_features_extractor)
            answer = policy.action_net(policy.mlp_extractor.forward_actor(features))
        else:
            answer = policy._predict(shown, deterministic=True)
        if isinstance(space, spaces.Discrete):
            return answer
        low, high = torch.from_numpy(space.low), torch.from_numpy(space.high)
        return low + (answer + 1) / 2 * (high - low) if policy.squash_output else torch.clamp(answer, low, high)


def load(path):
    """The policy, in evaluation mode."""
    data, parameters, _ = load_from_zip_file(path, device="cpu")
    kinds, space = (spaces.Discrete, spaces.Box), data["action_space"]
    if not isinstance(space, kinds) or hasattr(data["policy_class"], "lstm_actor") or data.get("use_sde"):
        sys.exit(f"{path}: its actions are {space}; Discrete and Box without recurrence and gSDE are exported")
    schedule = data.get("lr_schedule") or (lambda _: 0.0)
    policy = data["policy_class"](data["observation_space"], space, schedule, **data["policy_kwargs"])
    policy.load_state_dict(parameters["policy"])
    return policy.eval()


def main(folder):
    """Read FOLDER and write the results."""
    torch.set_num_threads(1)
    torch.distributions.Distribution.set_default_validate_args(False)  # depends on data, which no export does
    policy = load(json.loads((folder / "settings.json").read_text())["policy"])
    space = policy.observation_space
    boxes = space.spaces if isinstance(space, spaces.Dict) else {"observation": space}
    module, discrete = Deciding(policy, list(boxes)), isinstance(policy.action_space, spaces.Discrete)
    about = f"stable-baselines3 {stable_baselines3.__version__} ({type(policy).__name__}), torch {torch.__version__}"
    with torch.no_grad():
        if (folder / "rollout.npz").exists():
            data = np.load(folder / "rollout.npz", allow_pickle=False)
            answers = []
            for step in range(len(data["first"])):
                shown = {name: data[f"input/{name}"][step].reshape(1, *boxes[name].shape) for name in boxes}
                answers.append(module(*map(torch.from_numpy, shown.values())).numpy())
                chosen, _ = policy.predict(
                    shown if isinstance(space, spaces.Dict) else shown["observation"], deterministic=True
                )
                own = answers[-1].argmax(-1) if discrete else answers[-1]
                np.testing.assert_allclose(own, chosen, atol=1e-5)
            np.savez(folder / "outputs.npz", logits=np.stack(answers))
        else:
            examples = [torch.from_numpy(np.asarray(box.sample())[None]) for box in boxes.values()]
            names = {"input_names": list(boxes), "output_names": ["logits" if discrete else "velocity"]}
            torch.onnx.export(module, tuple(examples), folder / "model.onnx", dynamo=True, verbose=False, **names)
    fields = {name: {"role": name} for name in space} if isinstance(space, spaces.Dict) else {}
    (folder / "about.json").write_text(json.dumps({"about": about, "fields": fields}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
