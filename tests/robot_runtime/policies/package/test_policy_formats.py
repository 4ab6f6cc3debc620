"""Torch's own formats: agreement with eager torch, and refusal of hostile archives."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tiny_package as tiny
import torch
from raising import raises_naming
from torch import Tensor, nn

from robot_runtime.errors import PackageError, PolicyError, PolicyOutputError
from robot_runtime.policies.convert.networks.ddppo import DdppoConfig, DdppoPolicy
from robot_runtime.policies.convert.networks.export import EagerNetwork, examples, export
from robot_runtime.policies.package import golden
from robot_runtime.policies.package.formats.network import Execution, open_network
from robot_runtime.policies.package.formats.onnx import open_session
from robot_runtime.policies.package.golden import record
from robot_runtime.policies.package.manifest import Format, Manifest, Model
from robot_runtime.policies.package.policy import load_package
from robot_runtime.policies.package.writer import UNKNOWN_SHA256, write_package

FORMATS: tuple[Format, ...] = ("torch_export", "torchscript")


class Tiny(nn.Module):
    """The tiny network in torch."""

    def __init__(self) -> None:
        super().__init__()
        for name, value in tiny.weights().items():
            self.register_buffer(name, torch.from_numpy(value))

    def forward(self, depth: Tensor, goal: Tensor, state: Tensor, previous: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        kept = mask.float()
        pooled = nn.functional.avg_pool2d(depth.permute(0, 3, 1, 2), 4).reshape(1, 9)
        features = torch.cat([pooled, goal, state * kept, previous.float() * kept], 1)
        following = torch.tanh(features @ self.w)
        return following @ self.w_logits, following @ self.w_value, following


def manifest_of(format: Format) -> Manifest:
    return replace(tiny.MANIFEST, model=Model("model.bin", format, UNKNOWN_SHA256, "2.6"))


@pytest.fixture(scope="module", params=FORMATS)
def exported(request: pytest.FixtureRequest) -> tuple[Manifest, bytes]:
    manifest = manifest_of(request.param)
    return manifest, export(Tiny(), manifest, request.param)


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name, data in files.items():
            file.writestr(name, data)
    return target.getvalue()


@pytest.mark.slow
def test_a_package_of_each_format_matches_the_numpy_rollout(tmp_path: Path, exported: tuple[Manifest, bytes]):
    manifest, data = exported
    write_package(tmp_path, manifest, data, tiny.golden())
    package = load_package(tmp_path, Execution(threads=1, device="cpu"))
    assert package.agreement.same_actions == package.agreement.steps
    assert package.agreement.logit_difference < 1e-5
    assert "CPU, threads 1" in package.network.runtime


def test_a_runtime_that_is_too_old_is_named(exported: tuple[Manifest, bytes]):
    manifest, data = exported
    with raises_naming(PolicyError, "torch", "99.1", torch.__version__):
        open_network(replace(manifest, model=replace(manifest.model, minimum_runtime="99.1")), data)


def test_cuda_is_refused_where_there_is_none(exported: tuple[Manifest, bytes]):
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with raises_naming(PolicyError, "CUDA"):
        open_network(*exported, Execution(device="cuda"))


def test_outputs_that_are_not_the_manifests_are_refused(exported: tuple[Manifest, bytes]):
    manifest, data = exported
    network = open_network(replace(manifest, outputs=(manifest.outputs[0], manifest.outputs[2])), data)
    inputs = {t.name: e.numpy() for t, e in zip(manifest.inputs, examples(manifest), strict=True)}
    with raises_naming(PolicyOutputError, "3", "2", "outputs"):
        network.run(inputs)
    with raises_naming(PolicyError, "policy validate"):
        open_network(manifest, data).run({**inputs, "goal": np.zeros((7, 7), np.float32)})


def test_a_file_that_is_cut_off_is_refused(exported: tuple[Manifest, bytes]):
    manifest, data = exported
    for size in (0, 10, len(data) // 2, len(data) - 1):
        with pytest.raises(PackageError):
            open_network(manifest, data[:size])


@pytest.mark.parametrize("name", ["archive/extra/evil.py", "archive/../../escaped", "other/version"])
def test_an_unexpected_member_is_refused(exported: tuple[Manifest, bytes], name: str):
    manifest, data = exported
    with raises_naming(PackageError, manifest.model.file):
        open_network(manifest, archive({**members(data), name: b"x"}))


def test_a_member_twice_is_refused(exported: tuple[Manifest, bytes]):
    manifest, data = exported
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr(file.namelist()[0], b"x")
    with raises_naming(PackageError, manifest.model.file):
        open_network(manifest, buffer.getvalue())


# --- .pt2 -------------------------------------------------------------------------------------------------------------


class Bomb:
    exploded = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _explode, ()


def _explode() -> None:
    Bomb.exploded = True


@pytest.fixture(scope="module")
def pt2() -> dict[str, bytes]:
    return members(export(Tiny(), manifest_of("torch_export"), "torch_export"))


def changed(files: dict[str, bytes], part: str, change: Callable[[Any], None]) -> bytes:
    name = next(name for name in files if part in name)
    document = json.loads(files[name])
    change(document)
    return archive({**files, name: json.dumps(document).encode()})


@pytest.mark.slow
def test_an_onnx_file_holds_no_paths_of_the_exporting_machine() -> None:
    assert str(Path(__file__).parent).encode() not in export(Tiny(), tiny.MANIFEST, "onnx")


def test_weights_that_are_pickles_are_not_unpickled(pt2: dict[str, bytes]):
    def pickled(document: Any) -> None:
        for item in document["config"].values():
            item["use_pickle"] = True

    config_part = "constants_config" if json.loads(pt2[_named(pt2, "constants_config")])["config"] else "weights_config"
    with raises_naming(PackageError, "config.json"):
        open_network(manifest_of("torch_export"), changed(pt2, config_part, pickled))


def test_sample_inputs_that_are_more_than_tensors_are_not_unpickled(pt2: dict[str, bytes]):
    poisoned = io.BytesIO()
    torch.save(Bomb(), poisoned, pickle_module=pickle)
    with raises_naming(PackageError, "sample inputs"):
        open_network(manifest_of("torch_export"), archive({**pt2, _named(pt2, "sample_inputs"): poisoned.getvalue()}))
    assert not Bomb.exploded


@pytest.mark.parametrize(
    "target",
    [
        "torch.load",
        "torch.ops.evil.run.default",
        "torch.ops.aten.__class__.mro",
        "_operator.call",
        "math.sqrt",
        "#extension",
        "torch.hub.load",
    ],
)
def test_a_graph_that_calls_anything_but_operators_is_refused(pt2: dict[str, bytes], target: str):
    def call(document: Any) -> None:
        document["graph_module"]["graph"]["nodes"][0]["target"] = target

    with raises_naming(PackageError, repr(target)):
        open_network(manifest_of("torch_export"), changed(pt2, "models/", call))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(guards_code=["print(1)"]), "guards"),
        (lambda d: d.update(anything={"expr_str": "__import__('os')"}), "__import__('os')"),
        (lambda d: d.update(anything={"in_spec": '[1, {"type": "os.path"}]'}), "models/"),
        (lambda d: d.pop("graph_module"), torch.__version__),
    ],
)
def test_a_graph_with_python_in_it_is_refused(pt2: dict[str, bytes], change: Callable[[Any], None], said: str):
    with raises_naming(PackageError, said):
        open_network(manifest_of("torch_export"), changed(pt2, "models/", change))


def _named(files: dict[str, bytes], part: str) -> str:
    return next(name for name in files if part in name)


# --- TorchScript ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["torch.save(x, 'f')", "torch.from_file('f')", "ops.evil.run(x)"])
def test_a_program_that_touches_files_is_refused(call: str):
    files = members(export(Tiny(), manifest_of("torchscript"), "torchscript"))
    name = next(name for name in files if name.endswith("__torch__.py") or name.endswith(".py"))
    with raises_naming(PackageError, name.removeprefix("archive/"), call.split("(")[0].removesuffix(".run")):
        open_network(manifest_of("torchscript"), archive({**files, name: files[name] + call.encode()}))


def test_a_program_that_does_not_compile_is_refused():
    files = members(export(Tiny(), manifest_of("torchscript"), "torchscript"))
    name = _named(files, ".py")
    with raises_naming(PackageError, manifest_of("torchscript").model.file):
        open_network(manifest_of("torchscript"), archive({**files, name: b"class ("}))


# --- DD-PPO's network -------------------------------------------------------------------------------------------------


def test_the_network_has_the_checkpoints_parameters():
    state = DdppoPolicy(DdppoConfig()).state_dict()
    assert len(state) == 179
    assert sum(value.numel() for value in state.values()) == 12_454_917
    assert state["net.visual_encoder.compression.0.weight"].shape == (128, 1024, 3, 3)
    assert state["net.tgt_embeding.weight"].shape == (32, 3)
    assert state["net.state_encoder.rnn.weight_ih_l0"].shape == (2048, 576)
    assert state["action_distribution.linear.weight"].shape == (4, 512)


@pytest.mark.slow
@pytest.mark.parametrize(("rnn", "layers"), [("LSTM", 4), ("GRU", 2)])
def test_a_false_mask_clears_state_and_previous_action(rnn: Any, layers: int):
    config = DdppoConfig("resnet18", rnn, 2, 16, 64, 64)
    assert config.state_shape == (1, layers, 16)
    torch.manual_seed(0)
    policy = DdppoPolicy(config).eval()
    depth, goal = torch.rand(1, 64, 64, 1), torch.tensor([[2.0, 0.3]])

    def logits(state: float, previous: int, mask: bool) -> list[float]:
        inputs = (torch.full(config.state_shape, state), torch.tensor([[previous]]), torch.tensor([[mask]]))
        with torch.no_grad():
            return policy(depth, goal, *inputs)[0][0].tolist()

    assert logits(0.7, 2, False) == logits(0.0, 1, False)
    assert logits(0.7, 2, True) != logits(0.0, 2, True)
    assert logits(0.7, 2, True) != logits(0.7, 1, True)


@pytest.mark.slow
def test_an_onnx_export_repeats_eager_torch(tmp_path: Path):
    from robot_runtime.policies.package.observations import patchwork
    from tests.benchmarks.runtime.policy import bench_manifest

    config = DdppoConfig("resnet18", "LSTM", 1, 16, 64, 64)
    manifest = bench_manifest(config)
    torch.manual_seed(0)
    module = DdppoPolicy(config)
    observations = [patchwork(manifest, seed) for seed in range(3)]
    golden = record(manifest, EagerNetwork(manifest, module), observations, keep_sensors=1)
    write_package(tmp_path / "small.zip", manifest, export(module, manifest, "onnx"), golden)
    assert load_package(tmp_path / "small.zip").agreement.logit_difference < 1e-4


@pytest.mark.slow
def test_nothing_of_a_network_is_reported_to_the_makers_of_its_runtime(tmp_path: Path) -> None:
    """ONNX Runtime 1.29 and later keep what they will send in a database; not on CI, so that its variable is unset."""
    environ = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    environ |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    code = "import robot_runtime.policies.package.formats.onnx"
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, timeout=60)
    assert list(tmp_path.rglob("*onnxruntime*")) == []


def test_an_open_network_does_not_keep_its_file_in_memory() -> None:
    data = tiny.onnx_bytes()
    before = sys.getrefcount(data)
    session = open_session(data)
    assert (sys.getrefcount(data), len(session.get_inputs())) == (before, 5)


class Noisy(tiny.NumpyNetwork):
    """A network whose dropout was left on."""

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        outputs = super().run(inputs)
        return {**outputs, "logits": outputs["logits"] * NOISE.uniform(0.5, 1.5, 4).astype(np.float32)}


NOISE = np.random.default_rng(3)


@pytest.mark.parametrize(("network", "names"), [(Noisy(), "not deterministic"), (tiny.NumpyNetwork(5), "versions")])
def test_dropout_that_was_left_on_is_told_from_another_policy(network: tiny.NumpyNetwork, names: str) -> None:
    with raises_naming(PackageError, "golden rollout", names):
        golden.check(tiny.MANIFEST, tiny.golden(), network)


def test_a_network_newer_than_the_runtime_gets_the_remedy_that_helps() -> None:
    model = onnx.load_from_string(tiny.onnx_bytes())
    model.ir_version = 99
    with raises_naming(PackageError, "IR version", "pip install -U onnxruntime"):
        open_network(tiny.MANIFEST, model.SerializeToString())
