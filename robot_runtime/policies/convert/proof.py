"""Proof that a package computes the trained network, against the runtime's own network and the original framework.

The framework runs in its own interpreter. It is given the checkpoint's tensors, the settings of the network, and the
recorded rollout; its results become the golden rollout.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import CheckpointError, ConfigError, PolicyError
from robot_runtime.policies.convert.conversion import Original
from robot_runtime.policies.convert.network_facts import NetworkFacts, read_facts
from robot_runtime.policies.package.golden import Golden
from robot_runtime.policies.package.manifest import RECURRENT, VALUE, Manifest
from robot_runtime.policies.package.rollout import chosen
from robot_runtime.tasks.payloads import sensor_names

TIMEOUT_S = 600.0
_LAST_LINES = 6
_INPUT_ATOL = 1e-5
_SCRIPTS = {"stable-baselines3": "sb3_zip.py", "lerobot": "lerobot_folder.py"}

Array = NDArray[Any]


def run_original(python: Path, original: Original, manifest: Manifest, golden: Golden) -> Golden:
    """The framework's rollout.

    Raises:
        ConfigError: there is no such interpreter.
        PolicyError: it failed, or took longer than ``TIMEOUT_S``.
        CheckpointError: the framework's preprocessing or its largest logits differ.
    """
    with tempfile.TemporaryDirectory(prefix="robot-runtime-proof-") as name:
        folder = Path(name)
        (folder / "settings.json").write_text(json.dumps(original.settings))
        _save(folder / "weights.npz", original.tensors)
        arrays = {f"input/{key}": array for key, array in golden.inputs.items()}
        arrays.update({f"sensor/{key}": array for key, array in golden.sensors.items()})
        _save(folder / "rollout.npz", {"first": golden.first, "action": golden.action, **arrays})
        run_script(python, original, folder)
        try:
            with np.load(folder / "outputs.npz", allow_pickle=False) as file:
                outputs = dict(file)
            about = json.loads((folder / "about.json").read_text())["about"]
        except (OSError, ValueError, KeyError) as error:
            raise PolicyError(f"{original.framework} left no results: {error}", "run it again") from error
    _check_prepared(original, golden, outputs)
    return _with_outputs(manifest, replace(golden, original=about), outputs)


def read_trained(path: Path, framework: str, python: Path | None) -> tuple[NetworkFacts, dict[str, Any], Original]:
    """The network of a policy of Stable-Baselines3 or LeRobot, whose files hold weights, exported by its framework.

    The framework runs in an interpreter of its own: a Stable-Baselines3 zip holds pickles, which are programs.

    Args:
        path: path of the zip or folder.
        framework: its name, of :func:`robot_runtime.policies.package.files.framework_of`.
        python: interpreter that can import the framework, torch and onnxscript.

    Returns:
        The network, fields of the manifest that the policy says, and the policy in its framework.

    Raises:
        PolicyError: there is no interpreter, or the framework failed.
        ConfigError: the interpreter cannot be run.
    """
    if python is None:
        raise PolicyError(
            f"{path}: is a policy of {framework}, which has weights and no network",
            "add --framework-python PYTHON that has it, torch and onnxscript: code in the policy is run there",
        )
    original = Original(_SCRIPTS[framework], framework, {"policy": str(path.absolute())}, {})
    with tempfile.TemporaryDirectory(prefix="robot-runtime-export-") as name:
        folder = Path(name)
        (folder / "settings.json").write_text(json.dumps(original.settings))
        run_script(python, original, folder)
        fields: Mapping[str, Any] = json.loads((folder / "about.json").read_text())["fields"]
        facts = replace(read_facts(folder / "model.onnx"), path=path)
    unknown = [key for key, value in fields.items() if value == {"role": key} and key not in sensor_names()]
    return facts, {key: value for key, value in fields.items() if key not in unknown}, original


def run_script(python: Path, original: Original, folder: Path) -> None:
    """Run the framework's script on a folder. Raises ``ConfigError`` and ``PolicyError``."""
    script, framework = Path(__file__).parent / "frameworks" / original.script, original.framework
    command = [str(python), "-I", str(script), str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except OSError as error:
        raise ConfigError(f"{command[0]}: cannot be run: {error.strerror}", "give a Python's path") from error
    except subprocess.TimeoutExpired as error:
        raise PolicyError(f"{framework} took more than {TIMEOUT_S:g} s", "prove on a faster machine") from error
    if done.returncode:
        lines = "\n    ".join(done.stderr.strip().splitlines()[-_LAST_LINES:])
        raise PolicyError(
            f"{command[0]}: {framework} failed:\n    {lines}",
            "install it there (docs/how-to/convert-checkpoints.md), or name another --framework-python",
        )


def _check_prepared(original: Original, golden: Golden, outputs: Mapping[str, Array]) -> None:
    for name, array in outputs.items():
        if not name.startswith("prepared/"):
            continue
        key = name.removeprefix("prepared/")
        ours = golden.inputs[key][: len(array)].reshape(array.shape)
        difference = float(np.abs(array.astype(np.float64) - ours).max(initial=0.0))
        if not difference <= _INPUT_ATOL:
            raise CheckpointError(
                f"{original.framework} preprocesses {key} differently, by up to {difference:.3g}",
                "report it with the checkpoint's configuration",
            )


def _with_outputs(manifest: Manifest, golden: Golden, outputs: Mapping[str, Array]) -> Golden:
    made = {}
    for role, name in ((manifest.answer.role, "logits"), (VALUE, "value")):
        for tensor in manifest.outputs_of(role):
            made[tensor.name] = outputs[name].reshape(golden.steps, *tensor.shape).astype(np.float32)
    same = sum(
        chosen(manifest, made[manifest.answer.name][k].reshape(manifest.chunk, -1)) == action
        for k, action in enumerate(golden.action)
    )
    if same < golden.steps:
        raise CheckpointError(
            f"the framework's largest logit is our network's at {same} of {golden.steps} steps",
            "report it with the checkpoint's configuration",
        )
    states = {tensor.name: outputs["state"].reshape(tensor.shape) for tensor in manifest.inputs_of(RECURRENT)}
    return replace(golden, outputs=made, states=states)


def _save(path: Path, arrays: Mapping[str, Array]) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]
