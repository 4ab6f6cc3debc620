"""Policies of Stable-Baselines3 and LeRobot: their files hold weights, and only their framework has the network.

The framework runs in an interpreter of its own: a Stable-Baselines3 zip holds pickles, which are programs.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_runtime.errors import PolicyError
from robot_runtime.policies.convert.conversion import Original
from robot_runtime.policies.convert.network_facts import NetworkFacts, read_facts
from robot_runtime.policies.convert.proof import run_script
from robot_runtime.tasks.payloads import sensor_names

_SCRIPTS = {"stable-baselines3": "sb3_zip.py", "lerobot": "lerobot_folder.py"}


def read_trained(path: Path, framework: str, python: Path | None) -> tuple[NetworkFacts, dict[str, Any], Original]:
    """The network of a policy, exported by its framework.

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
