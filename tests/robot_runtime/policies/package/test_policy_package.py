"""Policy packages: valid ones run, invalid ones are refused before their network runs."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_package as tiny
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, external_data_helper, load_model_from_string
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.cli.main import run_command
from robot_runtime.common import bounded, config
from robot_runtime.errors import ConfigError, PackageError, PolicyError, PolicyMismatch, PolicyOutputError, RuntimeFault
from robot_runtime.imaging.preprocess import ResizeShortestEdge
from robot_runtime.policies import load_policy
from robot_runtime.policies.package import golden
from robot_runtime.policies.package.compatibility import check_task
from robot_runtime.policies.package.files import is_package, read_manifest, read_package
from robot_runtime.policies.package.formats.onnx_file import read_onnx
from robot_runtime.policies.package.manifest import Manifest, Need, Proof, Selection
from robot_runtime.policies.package.policy import (
    PackagePolicy,
    Selector,
    load_package,
    load_package_policy,
    probabilities,
)
from robot_runtime.policies.package.writer import manifest_yaml, write_package

GOOD = tiny.MANIFEST


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid package, not changed by tests."""
    return tiny.write_tiny(tmp_path_factory.mktemp("good") / "tiny")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A good package, to be broken."""
    return tiny.write_tiny(tmp_path / "tiny")


def act_all(policy: PackagePolicy, seed: int = 0, count: int = 20) -> list[Action]:
    policy.reset(tiny.TASK, seed)
    return [policy.act(observation) for observation in tiny.observations(count)]


# --- a good one -------------------------------------------------------------------------------------------------------


def test_folder_and_zip_hold_one_policy(tmp_path: Path, folder: Path):
    archive = tiny.write_tiny(tmp_path / "tiny.zip")
    assert is_package(folder)
    assert is_package(archive)
    assert read_manifest(folder) == read_manifest(archive)
    assert act_all(load_package_policy(folder)) == act_all(load_package_policy(archive))


def test_the_same_package_is_written_twice_byte_for_byte(tmp_path: Path):
    assert tiny.write_tiny(tmp_path / "a.zip").read_bytes() == tiny.write_tiny(tmp_path / "b.zip").read_bytes()


def test_a_manifest_round_trip(folder: Path):
    written = read_manifest(folder)
    assert replace(written, model=GOOD.model, golden=GOOD.golden, proof=GOOD.proof) == GOOD
    again = config.parse(yaml.safe_load(manifest_yaml(written)), Manifest, "again")
    assert again == written


def test_it_decides_as_the_original_network_does(folder: Path):
    policy = load_package_policy(folder)
    original = tiny.NumpyNetwork()
    state, previous = np.zeros((1, tiny.HIDDEN), np.float32), 0
    policy.reset(tiny.TASK, 0)
    for step, observation in enumerate(tiny.observations(30)):
        # The shorter side of 24 x 32 to 12, then the middle.
        depth = observation["depth"].reshape(12, 2, 16, 2, 1).mean(axis=(1, 3), dtype=np.float32)[:, 2:14]
        outputs = original.run(
            {
                "depth": depth[None],
                "goal": observation["pointgoal_with_gps_compass"][None],
                "state": state,
                "previous": np.array([[previous]]),
                "mask": np.array([[step > 0]]),
            }
        )
        action = policy.act(observation)
        np.testing.assert_allclose(policy.info()["logits"], outputs["logits"][0], atol=1e-4)
        assert policy.info()["value"] == pytest.approx(float(outputs["value"][0, 0]), abs=1e-4)
        assert action is tiny.TASK.actions[outputs["logits"][0].argmax()]
        state, previous = outputs["state_out"], int(outputs["logits"][0].argmax())


DECIDES = """
import sys
from pathlib import Path
import numpy as np
from robot_runtime.policies.package.policy import load_package_policy
policy = load_package_policy(Path(sys.argv[1]))
policy.reset(policy.task, 0)
policy.act({"depth": np.ones((24, 32, 1), np.float32), "pointgoal_with_gps_compass": np.ones(2, np.float32)})
print(*sys.modules)
"""


def test_it_decides_before_libraries_are_loaded_that_it_does_not_need(folder: Path):
    """They take more time than the network: with them it would not be ready within a second."""
    done = subprocess.run([sys.executable, "-c", DECIDES, str(folder)], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "onnxruntime" in loaded
    assert not loaded & {"scipy", "cv2", "numba", "matplotlib", "jinja2", "torch", "onnx", "rich"}


def test_a_command_does_not_import_unused_packages(folder: Path):
    code = "import sys; from robot_runtime.cli.main import run_command; run_command(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", code, "policy", "inspect", str(folder)]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert "robot_runtime.policies.package.files" in loaded
    assert not loaded & {"sim_bridge", "drivers", "calibration", "scipy", "cv2", "numba", "matplotlib"}


def test_an_episode_does_not_depend_on_the_one_before(folder: Path):
    policy = load_package_policy(folder)
    first = act_all(policy)
    assert act_all(policy) == first
    assert len(set(first)) > 1


def test_the_first_step_logs_package_and_seeds(folder: Path):
    policy = load_package_policy(folder, selection="sample", seed=5, temperature=2.5)
    policy.reset(tiny.TASK, 17)
    policy.act(tiny.observations(1)[0])
    said = policy.info()
    assert said["package"] == {"name": "tiny", "model_sha256": policy.manifest.model.sha256}
    assert said["selection"] == {"mode": "sample", "temperature": 2.5, "seed": [5, 17]}
    policy.act(tiny.observations(1)[0])
    assert set(policy.info()) == {"logits", "value"}


def test_sampling_follows_the_seed(folder: Path):
    policy = load_package_policy(folder, selection="sample", temperature=5.0)
    runs = {seed: act_all(policy, seed) for seed in (1, 2, 1)}
    assert act_all(policy, 1) == runs[1]
    assert runs[1] != runs[2]


@given(st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=6), st.floats(0.25, 4))
def test_samples_have_the_softmaxs_shares(logits: list[float], temperature: float):
    array = np.array(logits, np.float32)
    shares = probabilities(array, temperature)
    assert shares.sum() == pytest.approx(1)
    selector = Selector(Selection("sample", temperature), 3)
    drawn = np.bincount([selector.choose(array) for _ in range(400)], minlength=len(array)) / 400
    assert np.abs(drawn - shares).max() < 0.15
    assert Selector(Selection("argmax"), 0).choose(array) == int(array.argmax())


def test_it_is_loaded_by_its_path_like_any_agent(folder: Path):
    policy = load_policy(str(folder), threads=1, device="cpu")
    assert isinstance(policy, PackagePolicy)
    assert policy.task == tiny.TASK
    assert policy.needs == ("depth", "pointgoal_with_gps_compass")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"thread": 1}, "'thread'"),
        ({"threads": "two"}, "threads='two'"),
        ({"threads": 0}, "1..256"),
        ({"device": "tpu"}, "'tpu'"),
        ({"selection": "best"}, "'best'"),
        ({"temperature": 0}, "temperature"),
    ],
)
def test_an_invalid_argument_is_refused(folder: Path, arguments: dict[str, Any], said: str):
    with raises_naming(ConfigError, said):
        load_package_policy(folder, **arguments)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["policy.yaml", "model.onnx", "golden.npz"])
def test_a_missing_file_is_named(broken: Path, name: str):
    (broken / name).unlink()
    with raises_naming(PackageError, broken, name):
        load_package(broken)


@pytest.mark.parametrize("name", ["model.onnx", "golden.npz"])
def test_a_changed_file_is_refused_before_it_is_used(broken: Path, name: str):
    data = bytearray((broken / name).read_bytes())
    data[len(data) // 2] ^= 1
    (broken / name).write_bytes(data)
    with raises_naming(PackageError, name, "SHA-256"):
        load_package(broken)


def test_a_path_without_a_package_is_refused(tmp_path: Path):
    with raises_naming(PackageError, tmp_path / "nothing"):
        load_package(tmp_path / "nothing")
    (tmp_path / "text.zip").write_text("hello")
    with raises_naming(PackageError, "text.zip"):
        load_package(tmp_path / "text.zip")
    assert not is_package(tmp_path)


def test_a_link_out_of_the_folder_is_not_followed(broken: Path, tmp_path: Path):
    outside = tmp_path / "outside.onnx"
    (broken / "model.onnx").rename(outside)
    (broken / "model.onnx").symlink_to(outside)
    with raises_naming(PackageError, "model.onnx"):
        load_package(broken)


@pytest.mark.parametrize("name", ["../escaped", "/etc/escaped", "sub/policy.yaml", "..\\escaped"])
def test_a_zip_with_a_path_in_it_is_refused(tmp_path: Path, name: str):
    archive = tiny.write_tiny(tmp_path / "tiny.zip")
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(name, b"x")
    with raises_naming(PackageError, repr(name)):
        load_package(archive)


def test_a_zip_with_a_name_twice_is_refused(tmp_path: Path):
    archive = tiny.write_tiny(tmp_path / "tiny.zip")
    with zipfile.ZipFile(archive, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("policy.yaml", b"x")
    with raises_naming(PackageError, archive):
        load_package(archive)


def test_a_manifest_of_gigabytes_is_not_unpacked(tmp_path: Path):
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("policy.yaml", b" " * (1 << 22))
    with raises_naming(PackageError, archive, "policy.yaml", 1 << 22, 1 << 20):
        load_package(archive)


@given(position=st.integers(0, 10_000), value=st.integers(0, 255))
@settings(max_examples=60)
def test_a_damaged_zip_is_refused_or_the_same(tmp_path_factory: pytest.TempPathFactory, position: int, value: int):
    path = tmp_path_factory.getbasetemp() / "whole.zip"
    if not path.exists():
        tiny.write_tiny(path)
    data = bytearray(path.read_bytes())
    data[position % len(data)] = value
    damaged = path.with_name("damaged.zip")
    damaged.write_bytes(data)
    with suppress(RuntimeFault):
        assert read_package(damaged).model == read_package(path).model


def test_a_zip_of_a_thousand_times_its_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounded, "FREE_BYTES", 1 << 16)
    path = tiny.write_tiny(tmp_path / "tiny.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("filler", bytes(1 << 24))
    with raises_naming(PackageError, "tiny.zip", "16"):
        read_package(path)


def test_a_golden_rollout_with_a_member_that_is_no_array_is_refused():
    file = io.BytesIO(tiny.golden().to_bytes())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("value", b"no array")
    with raises_naming(PackageError, "golden.npz"):
        golden.read(GOOD, file.getvalue())


# --- manifests --------------------------------------------------------------------------------------------------------


def rewrite(package: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = yaml.safe_load((package / "policy.yaml").read_text())
    change(document)
    (package / "policy.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def setter(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        place: Any = document
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[int(last) if isinstance(place, list) else last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("schema", 3, "has schema 3"),
        ("name", "../../x", "name must be made of"),
        ("sources", [], "sources"),
        ("sources.0.sha256", "abc", "sha256"),
        ("model.file", "../model.onnx", "'../model.onnx'"),
        ("model.file", "/etc/passwd", "'/etc/passwd'"),
        ("model.sha256", "A" * 64, "sha256"),
        ("model.format", "pickle", "model.format"),
        ("model.opset", None, "opset"),
        ("model.minimum_runtime", "latest", "minimum_runtime"),
        ("inputs.0.role", "sonar", "'sonar'"),
        ("inputs.0.shape", [1, 12, 0, 1], "'depth'"),
        ("inputs.0.shape", [1 << 20, 1 << 20], "2**26"),
        ("inputs.2.shape", [1, 9], "recurrent states"),
        ("inputs.3.shape", [1, 2], "[1, 2]"),
        ("inputs.3.dtype", "float32", "float32"),
        ("inputs.1.name", "depth", "depth"),
        ("outputs.0.shape", [1, 5], "logits"),
        ("outputs.1.role", "logits", "one output"),
        ("outputs.0.role", "velocity", "velocity is [forward, left turn]"),
        ("outputs.0.role", "unused", "one output"),
        ("timing", {"period_s": 0.25}, "'timing'"),
        ("inputs.0.count", 5, "does not hold 5"),
        ("inputs.0.count", 0, "count"),
        ("inputs.0.period_s", 61.0, "period_s"),
        ("inputs.0.shape", [1, None, 12, 1], "may grow"),
        ("inputs.2.shape", [None, None], "may grow"),
        ("inputs.3.offset", 2, "offset"),
        ("selection.temperature", 0.0, "temperature"),
        ("selection.mode", "best", "selection.mode"),
        ("golden.logit_atol", 1.0, "0.1"),
        ("golden.logit_atol", float("nan"), "logit_atol"),
        ("golden.steps", 0, "steps"),
        ("proof.same_actions", 7, "same_actions"),
        ("task.actions", ["stop", "stop", "turn_left", "turn_right"], "'actions'"),
        ("task.camera.hfov_deg", "79", "hfov_deg"),
        ("preprocess.0.kernel", "cv2_cubic", "kernel"),
        ("licence", "MIT", "licence"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused_by_field(broken: Path, path: str, value: Any, said: str):
    rewrite(broken, setter(path, value))
    with raises_naming(ConfigError, said):
        load_package(broken)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &a [*a]\n", "holds itself"),
        ("[" * 100_000, "nested more than"),
        ("- " * 5_000, "nested more than"),
        ("a: 1\na: 2\n", "repeated"),
        ("!!python/object/apply:os.system ['true']\n", "not valid YAML"),
        ("\x00", "not valid YAML"),
        ("", "document"),
    ],
)
def test_a_hostile_manifest_is_refused(broken: Path, text: str, said: str):
    (broken / "policy.yaml").write_text(text)
    with raises_naming(ConfigError, said):
        load_package(broken)


@given(st.binary(max_size=400))
def test_manifests_of_other_types_are_refused(data: bytes):
    with pytest.raises(ConfigError):
        config.parse(config.parse_yaml(data, "policy.yaml"), Manifest, "policy.yaml")


_SCALARS = st.none() | st.booleans() | st.integers(-(1 << 40), 1 << 40) | st.floats() | st.text(max_size=8)
_DOCUMENT = config.unparse(GOOD)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=150)
def test_a_manifest_with_one_changed_value_is_valid_or_refused(data: st.DataObject):
    document = yaml.safe_load(yaml.safe_dump(_DOCUMENT))
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(_SCALARS | st.lists(_SCALARS, max_size=3))
    with suppress(ConfigError):
        assert isinstance(config.parse(document, Manifest, "policy.yaml"), Manifest)


# --- network and golden rollout ---------------------------------------------------------------------------------------


def test_a_network_of_other_weights_does_not_repeat_the_rollout(tmp_path: Path):
    tiny.write_unchecked(tmp_path, GOOD, tiny.onnx_bytes(seed=1), tiny.golden(seed=0))
    with raises_naming(PackageError, "logits", GOOD.name):
        load_package(tmp_path)


def test_a_network_of_other_weights_is_not_written(tmp_path: Path):
    with raises_naming(PackageError, "logits", GOOD.name):
        write_package(tmp_path / "package.zip", GOOD, tiny.onnx_bytes(seed=1), tiny.golden(seed=0))
    assert not list(tmp_path.iterdir())


def test_writing_fills_in_the_proof(tmp_path: Path):
    stated = Proof("the best of all networks", steps=999, same_actions=999, max_logit_difference=0.0)
    golden = replace(tiny.golden(), outputs={**tiny.golden().outputs, "logits": tiny.golden().outputs["logits"] + 5e-5})
    written = write_package(tmp_path, replace(GOOD, proof=stated), tiny.onnx_bytes(), golden).proof
    assert (written.against, written.steps, written.same_actions) == ("numpy", 6, 6)
    assert written.max_logit_difference == pytest.approx(5e-5, rel=0.1)
    assert read_package(tmp_path).manifest.proof == written


def test_inspect_names_the_writer_of_an_unchecked_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    stated = Proof("the best of all networks", steps=999, same_actions=999, max_logit_difference=0.0)
    tiny.write_unchecked(tmp_path, GOOD, tiny.onnx_bytes(), tiny.golden(), stated)
    assert run_command(["policy", "inspect", str(tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "by its writer: 999 of 999" in shown
    assert "policy validate" in shown


def test_other_preprocessing_does_not_repeat_the_rollout(tmp_path: Path):
    swapped = replace(GOOD, preprocess=(ResizeShortestEdge(("depth",), 12, "torch_nearest"), GOOD.preprocess[1]))
    tiny.write_unchecked(tmp_path, swapped, tiny.onnx_bytes(), tiny.golden())
    with raises_naming(PackageError, "inputs", GOOD.name):
        load_package(tmp_path)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_refused(tmp_path: Path, poison: float):
    tiny.write_unchecked(tmp_path, GOOD, tiny.onnx_bytes(poison=poison), tiny.golden())
    with raises_naming(PolicyOutputError, "'logits'", "4"):
        load_package(tmp_path)


def test_a_rollout_with_a_pickle_in_it_is_not_unpickled(tmp_path: Path):
    golden = tiny.golden()
    poisoned = replace(golden, outputs={**golden.outputs, "value": np.array([Bomb()], object)})
    tiny.write_unchecked(tmp_path, GOOD, tiny.onnx_bytes(), poisoned)
    with raises_naming(PackageError, "golden.npz"):
        load_package(tmp_path)
    assert not Bomb.exploded


class Bomb:
    """Object that records its unpickling."""

    exploded = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _explode, ()


def _explode() -> None:
    Bomb.exploded = True


def test_the_pickle_bomb_explodes_when_unpickled():
    pickle.loads(pickle.dumps(Bomb()))
    assert Bomb.exploded
    Bomb.exploded = False


def test_weights_in_other_files_are_refused(tmp_path: Path):
    model = load_model_from_string(tiny.onnx_bytes())
    tensor = model.graph.initializer[0]
    external_data_helper.set_external_data(tensor, "../../../../etc/passwd", 0, 8)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tiny.write_unchecked(tmp_path, GOOD, model.SerializeToString(), tiny.golden())
    with raises_naming(PackageError, "model.onnx", "/etc/passwd", "policy package"):
        load_package(tmp_path)


def test_facts_of_an_onnx_file():
    facts = read_onnx(tiny.onnx_bytes())
    assert (facts.ir_version, facts.opsets, facts.data) == (8, {"": tiny.OPSET}, frozenset())
    assert {"MatMul", "Tanh"} < facts.operators


@given(st.binary(max_size=300) | st.integers(0, 3000).map(lambda size: tiny.onnx_bytes()[:size]))
def test_bytes_that_are_no_onnx_are_refused(data: bytes):
    try:
        read_onnx(data)
    except ValueError:
        return
    assert data


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": replace(GOOD.model, opset=18)}, ("opset", "17", "18")),
        ({"model": replace(GOOD.model, minimum_runtime="99.0")}, ("onnxruntime", "99.0")),
        (
            {"inputs": (Need("deep", "depth", "float32", (1, 12, 12, 1)), *GOOD.inputs[1:])},
            ("'inputs'", "deep", "depth"),
        ),
        (
            {"inputs": (Need("depth", "depth", "float32", (1, 12, 12, 3)), *GOOD.inputs[1:])},
            ("'depth'", "[1, 12, 12, 3]"),
        ),
    ],
)
def test_a_network_that_contradicts_its_manifest_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: tuple[str, ...]
):
    original = tiny.golden()
    if "inputs" in changes:
        first = changes["inputs"][0]
        inputs = {first.name: np.zeros((original.steps, *first.shape), np.float32), "goal": original.inputs["goal"]}
        original = replace(original, inputs=inputs)
    tiny.write_unchecked(tmp_path, replace(GOOD, **changes), tiny.onnx_bytes(), original)
    with raises_naming(PolicyError, *said):
        load_package(tmp_path)


def test_an_unknown_operator_is_named(tmp_path: Path):
    model = load_model_from_string(tiny.onnx_bytes())
    model.graph.node[0].op_type = "FlyAway"
    tiny.write_unchecked(tmp_path, GOOD, model.SerializeToString(), tiny.golden())
    with raises_naming(PackageError, "FlyAway"):
        load_package(tmp_path)


def test_a_golden_rollout_of_another_policy_is_refused(tmp_path: Path):
    golden = tiny.golden()
    tiny.write_unchecked(tmp_path, GOOD, tiny.onnx_bytes(), replace(golden, inputs={"depth": golden.inputs["depth"]}))
    with raises_naming(PackageError, "'input/goal'"):
        load_package(tmp_path)
    file = io.BytesIO()
    np.savez(file, first=np.zeros(3))
    (tmp_path / "golden.npz").write_bytes(file.getvalue())
    with raises_naming(PackageError, "golden.npz", "SHA-256"):
        load_package(tmp_path)


# --- tasks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"camera": replace(tiny.TASK.camera, width=64, height=48)}, "32x24, task 'tiny_pointnav' has 64x48"),
        ({"camera": replace(tiny.TASK.camera, hfov_deg=70.0)}, "79.0, task 'tiny_pointnav' has 70.0"),
        ({"camera": replace(tiny.TASK.camera, height_m=0.6)}, "0.88, task 'tiny_pointnav' has 0.6"),
        ({"camera": replace(tiny.TASK.camera, tilt_deg=-20.0)}, "0.0, task 'tiny_pointnav' has -20.0"),
        ({"camera": replace(tiny.TASK.camera, depth_max_m=5.0)}, "10.0, task 'tiny_pointnav' has 5.0"),
        ({"camera": replace(tiny.TASK.camera, depth_normalized=False)}, "True, task 'tiny_pointnav' has False"),
        ({"magnitudes": replace(tiny.TASK.magnitudes, turn_deg=10.0)}, "30.0, task 'tiny_pointnav' has 10.0"),
        ({"magnitudes": replace(tiny.TASK.magnitudes, forward_m=0.5)}, "0.25, task 'tiny_pointnav' has 0.5"),
        ({"actions": (Action.STOP, Action.MOVE_FORWARD)}, "stop, move_forward, turn_left, turn_right, task"),
    ],
)
def test_a_task_that_differs_is_refused_with_both_values(folder: Path, changes: dict[str, Any], said: str):
    policy = load_package_policy(folder)
    with raises_naming(PolicyMismatch, said):
        policy.check(replace(tiny.TASK, **changes))


def test_irrelevant_differences_of_tasks_are_accepted(folder: Path):
    policy = load_package_policy(folder)
    policy.check(
        replace(
            tiny.TASK,
            actions=(Action.LOOK_UP, *tiny.TASK.actions),
            magnitudes=replace(tiny.TASK.magnitudes, tilt_deg=15.0),
            max_steps=7,
        )
    )


def test_a_policy_without_images_runs_behind_any_camera():
    blind = replace(GOOD, inputs=GOOD.inputs[1:])
    other = replace(tiny.TASK, camera=replace(tiny.TASK.camera, width=64))
    check_task(blind, other)
    with raises_naming(PolicyMismatch, "32x24", "64x24"):
        check_task(GOOD, other)


def test_a_point_goal_of_another_form_is_refused():
    with raises_naming(PolicyMismatch, "pointgoal_with_gps_compass"):
        check_task(GOOD, replace(tiny.TASK, pointgoal_format="cartesian"))


def test_a_sensor_that_is_not_shown_is_named(folder: Path):
    policy = load_package_policy(folder)
    policy.reset(tiny.TASK, 0)
    with raises_naming(PolicyError, "depth", "--sensor"):
        policy.act({"pointgoal_with_gps_compass": np.zeros(2, np.float32)})


def test_an_observation_of_another_shape_is_refused(folder: Path):
    policy = load_package_policy(folder)
    policy.reset(tiny.TASK, 0)
    observation = tiny.observations(1)[0] | {"depth": np.zeros((5, 5, 1), np.float64)}
    with raises_naming(PolicyError, "torch_area"):
        policy.act(observation)
