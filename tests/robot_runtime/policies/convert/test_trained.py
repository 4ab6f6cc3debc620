"""Policies whose network only their framework has become packages in an interpreter of its own, here a double."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zoo_networks as zoo
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.errors import CheckpointError, ConfigError, PackageError, PolicyError
from robot_runtime.policies import load_policy
from robot_runtime.policies.convert.draft import OpenQuestionsError, draft
from robot_runtime.policies.package.policy import load_package
from robot_runtime.policies.package.writer import write_package

DOUBLE = """#!{python}
import json, shutil, sys
from pathlib import Path
import numpy as np, onnxruntime
folder = Path(sys.argv[3])
assert json.loads((folder / "settings.json").read_text())["policy"] == {policy!r}
if (folder / "rollout.npz").exists():
    session, data = onnxruntime.InferenceSession({network!r}), np.load(folder / "rollout.npz")
    names, answers = [port.name for port in session.get_inputs()], []
    for step in range(len(data["first"])):
        answers.append(session.run(None, {{name: data["input/" + name][step] for name in names}})[0] + {error})
    np.savez(folder / "outputs.npz", logits=np.stack(answers))
else:
    shutil.copy({network!r}, folder / "model.onnx")
(folder / "about.json").write_text(json.dumps({{"about": "framework 1", "fields": {fields!r}}}))
"""
"""Of the frameworks' scripts: exports a network, and answers a rollout by it."""

Interpreter = Callable[..., Path]


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    def make(kind: zoo.Kind, policy: Path, fields: object, error: str = "0") -> Path:
        network, program = kind.write(tmp_path / "net.onnx"), tmp_path / "python"
        said = {"python": sys.executable, "policy": str(policy), "network": str(network)}
        program.write_text(DOUBLE.format(**said, fields=fields, error=error))
        program.chmod(0o755)
        return program

    return make


@pytest.fixture
def sb3(tmp_path: Path) -> Path:
    path = tmp_path / "ppo.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data", "policy.pth", "_stable_baselines3_version"):
            archive.writestr(name, "")
    return path


@pytest.fixture
def lerobot(tmp_path: Path) -> Path:
    folder = tmp_path / "act"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("{}")
    return folder


SEEN = replace(zoo.KINDS["rgbd"], inputs=[("gps", "float32", (1, 2)), ("own", "float32", (1, 1))])


def test_the_framework_exports_the_network_and_proves_it(
    sb3: Path, interpreter: Interpreter, capsys: pytest.CaptureFixture[str]
) -> None:
    python = interpreter(SEEN, sb3, {"gps": {"role": "gps"}, "own": {"role": "own"}})
    command = ["policy", "package", str(sb3), "--out", str(sb3.parent / "package")]
    with raises_naming(PolicyError, sb3, "stable-baselines3", "--framework-python"):
        load_policy(str(sb3))
    assert run_command(command) == 9
    assert "--framework-python PYTHON" in capsys.readouterr().err
    command += ["--framework-python", str(python)]
    assert run_command(command) == 9, "'own' is none of the runtime's sensors"
    assert "--set own.role=SENSOR" in capsys.readouterr().err
    assert run_command([*command, "--set", "own.role=compass"]) == 0
    manifest = load_package(sb3.parent / "package").manifest
    assert manifest.proof.against == "framework 1"
    assert (manifest.name, manifest.model.file) == ("ppo", "model.onnx")


def test_a_network_that_is_not_the_frameworks_is_not_packaged(sb3: Path, interpreter: Interpreter) -> None:
    said = {"gps": {"role": "gps"}, "own": {"role": "compass"}}
    manifest, facts, golden = draft(sb3, python=interpreter(SEEN, sb3, said, "0.01"))
    with raises_naming(PackageError, "logits"):
        write_package(sb3.parent / "package", manifest, facts.model, golden)
    with raises_naming(CheckpointError, "largest logit"):
        draft(sb3, python=interpreter(SEEN, sb3, said, "np.random.normal(0, 100, (1, 4))"))


def test_of_a_lerobot_folder_what_its_features_do_not_say_is_asked_for(lerobot: Path, interpreter: Interpreter) -> None:
    kind = replace(SEEN, inputs=[("observation_state", "float32", (1, 2))], outputs=[("action", "float32", (1, 8, 2))])
    unsaid: dict[str, object] = {"observation_state": {"role": ""}, "action": {"role": ""}}
    python = interpreter(kind, lerobot, unsaid | {"carry_out": 4, "rgb": "unit"})
    with pytest.raises(OpenQuestionsError) as caught:
        draft(lerobot, python=python)
    assert {keys for keys, _ in caught.value.asked.values()} == {("observation_state", "role"), ("action", "role")}
    said = {"observation_state": {"role": "gps"}, "action": {"role": "velocity"}, "timing": {"period_s": 0.1}}
    manifest, _, golden = draft(lerobot, said, python=python)
    assert (manifest.chunk, manifest.carry_out, golden.original) == (8, 4, "framework 1")


@pytest.mark.parametrize("at", [20, -60, -30])
def test_a_damaged_zip_is_named(sb3: Path, at: int) -> None:
    content = bytearray(sb3.read_bytes())
    content[at] ^= 0xFF
    sb3.write_bytes(content)
    with raises_naming(PolicyError, sb3):
        load_policy(str(sb3))


def test_an_interpreter_that_fails_is_named_with_what_it_said(sb3: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho No module named stable_baselines3 >&2; exit 1\n")
    broken.chmod(0o755)
    with raises_naming(PolicyError, broken, "No module named stable_baselines3", "--framework-python"):
        draft(sb3, python=broken)
    with raises_naming(ConfigError, "nowhere"):
        draft(sb3, python=Path("nowhere"))
