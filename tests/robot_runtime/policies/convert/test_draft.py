"""A network's file becomes a package by one command, and asks for what the file does not say."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
import zoo_networks as zoo
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.errors import CheckpointError, ConfigError, PolicyError, PolicyMismatch
from robot_runtime.policies import load_policy
from robot_runtime.policies.convert.draft import draft
from robot_runtime.policies.package.formats.network import Network
from robot_runtime.policies.package.golden import Agreement
from robot_runtime.policies.package.observations import patchwork
from robot_runtime.policies.package.policy import Package, PackagePolicy, load_package
from robot_runtime.policies.package.rollout import Rollout, prepare
from robot_runtime.policies.package.speed import time_package
from robot_runtime.policies.package.writer import write_package


@pytest.mark.parametrize("name", zoo.KINDS)
def test_each_kind_of_network_becomes_a_package(tmp_path: Path, name: str) -> None:
    kind = zoo.KINDS[name]
    manifest, facts, golden = draft(kind.write(tmp_path / "net.onnx"), kind.about, kind.task, kind.rgb)
    write_package(tmp_path / "net.zip", manifest, facts.model, golden, facts.weights)
    package = load_package(tmp_path / "net.zip")
    assert set(package.manifest.needs) == set(kind.needs)
    assert package.manifest.answer.role == kind.answer
    assert package.agreement.logit_difference == 0
    policy = load_policy(str(tmp_path / "net.zip"))
    policy.reset(manifest.task, 0)
    for seed in range(3):
        policy.act(patchwork(manifest, seed))
    policy.close()


def test_what_the_file_does_not_say_is_asked_for(tmp_path: Path) -> None:
    image = zoo.KINDS["imagenet"].write(tmp_path / "image.onnx")
    with raises_naming(PolicyError, image, "'image'", "--rgb"):
        draft(image)
    velocity = zoo.KINDS["velocity"].write(tmp_path / "velocity.onnx")
    with raises_naming(PolicyError, "motions", "--set timing.period_s"):
        draft(velocity)
    objects = zoo.KINDS["semantic objectnav"].write(tmp_path / "objects.onnx")
    with raises_naming(PolicyError, "task", "--task"):
        draft(objects)
    odd = replace(zoo.KINDS["rgbd"], inputs=[("x", "float32", (1, 7)), zoo.GOAL]).write(tmp_path / "odd.onnx")
    with raises_naming(PolicyError, "'x'", "--set x.role=SENSOR"):
        draft(odd)
    six = replace(zoo.KINDS["rgbd"], outputs=[("logits", "float32", (1, 6))]).write(tmp_path / "six.onnx")
    with raises_naming(PolicyError, "6 logits", "--task"):
        draft(six)
    scalar = replace(zoo.KINDS["rgbd"], outputs=[("logits", "float32", ())]).write(tmp_path / "scalar.onnx")
    with raises_naming(PolicyError, "1 logits", "--task"):
        draft(scalar)


def test_the_remedy_of_a_refused_command_is_carried_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(zoo.KINDS["imagenet"].write(tmp_path / "net.onnx"))
    assert run_command(["policy", "package", path]) == 9
    assert "--rgb raw (0..255), unit (0..1) or imagenet" in capsys.readouterr().err
    assert run_command(["policy", "package", path, "--rgb", "imagenet"]) == 0
    assert load_package(tmp_path / "net.zip").manifest.preprocess[-2].op == "standardize"
    (tmp_path / "about.yaml").write_text("name: renamed\nimage: {count: 1}\n")
    options = [
        "--about",
        str(tmp_path / "about.yaml"),
        "--set",
        "selection.mode=sample",
        "--out",
        str(tmp_path / "other"),
    ]
    assert run_command(["policy", "package", path, "--rgb", "unit", *options]) == 0
    manifest = load_package(tmp_path / "other").manifest
    assert (manifest.name, manifest.selection.mode) == ("renamed", "sample")
    assert run_command(["policy", "package", path, "--rgb", "gray"]) == 2
    assert run_command(["policy", "package", path, "--rgb", "unit", "--set", "colour"]) == 2


def test_the_yaml_of_open_questions_is_completed_and_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = replace(
        zoo.KINDS["velocity"], inputs=[("image", "float32", (1, 3, 16, 16)), ("x", "float32", (1, 7)), zoo.GOAL]
    )
    path, form = kind.write(tmp_path / "net.onnx"), tmp_path / "net.about.yaml"
    command = ["policy", "package", str(path)]
    assert run_command(command) == 9
    assert f"--about {form}" in capsys.readouterr().err.replace("\n", "")
    asked = yaml.safe_load(form.read_text())
    assert asked == {"rgb": None, "x": {"role": None}, "timing": {"period_s": None}}
    form.write_text(form.read_text().replace('"rgb":', '"rgb": unit'))
    assert run_command([*command, "--about", str(form)]) == 9
    said = capsys.readouterr().err
    assert "'image'" not in said
    assert "'x'" in said
    assert "unit" in form.read_text(), "what was completed is kept"
    form.write_text(form.read_text().replace("role:", "role: gps").replace("period_s:", "period_s: 0.25"))
    with raises_naming(PolicyError, "'x'", [1, 7]):
        draft(path, yaml.safe_load(form.read_text()))
    good = replace(kind, inputs=[kind.inputs[0], ("x", "float32", (1, 2)), ("goal", "float32", (1, 2))])
    assert run_command(["policy", "package", str(good.write(path)), "--about", str(form)]) == 0
    manifest = load_package(tmp_path / "net.zip").manifest
    assert set(manifest.needs) == {"rgb", "gps", "pointgoal_with_gps_compass"}


def test_of_a_chunk_some_actions_are_carried_out_before_the_network_is_asked_again(tmp_path: Path) -> None:
    kind = zoo.KINDS["chunk of actions"]
    manifest, _, _ = draft(kind.write(tmp_path / "net.onnx"), kind.about)
    asked: list[int] = []

    class Rows(Network):
        runtime = "rows"

        def run(self, inputs):  # type: ignore[no-untyped-def]
            asked.append(int(inputs["prev_action"][0, 0]))
            return {"logits": np.eye(4, dtype=np.float32)[[[1, 2, 3]]]}

    policy = PackagePolicy(Package(tmp_path, manifest, Rows(), Agreement(1, 1, 0.0, 0.0, 0.0)))
    policy.reset(manifest.task, 0)
    shown = patchwork(manifest, 0)
    assert [policy.act(shown).value for _ in range(4)] == [manifest.task.actions[k].value for k in (1, 2, 1, 2)]
    assert asked == [0, 2]
    assert policy.info() == {}
    policy.act(shown)
    policy.overruled(manifest.task.actions[3])
    policy.act(shown)
    assert asked == [0, 2, 2, 3], "what is left of an answer was meant for another place"


def test_a_history_has_the_observations_at_which_nothing_is_asked(tmp_path: Path) -> None:
    path = replace(zoo.KINDS["chunk of velocities"], inputs=[("rgb", "uint8", (1, 3, 16, 16, 3)), zoo.GOAL]).write(
        tmp_path / "net.onnx"
    )
    manifest, _, _ = draft(path, zoo.TRAJECTORY | {"carry_out": 2})
    seen: list[list[int]] = []

    class Spy(Network):
        runtime = "spy"

        def run(self, inputs):  # type: ignore[no-untyped-def]
            seen.append(inputs["rgb"][0, :, 0, 0, 0].tolist())
            return {"cmd_vel": np.full((1, 4, 2), 0.5, np.float32)}

    policy = PackagePolicy(Package(tmp_path, manifest, Spy(), Agreement(1, 1, 0.0, 0.0, 0.0)))
    policy.reset(manifest.task, 0)
    for step in range(5):
        shown = patchwork(manifest, 0)
        policy.act(shown | {"rgb": np.full_like(shown["rgb"], step)})
    assert seen == [[0, 0, 0], [0, 1, 2], [2, 3, 4]]


@pytest.mark.parametrize("carry_out", [0, 4])
def test_more_actions_than_an_answer_has_are_not_carried_out(tmp_path: Path, carry_out: int) -> None:
    path = zoo.KINDS["chunk of actions"].write(tmp_path / "net.onnx")
    with raises_naming(ConfigError, "carry_out", carry_out, 3):
        draft(path, {"carry_out": carry_out})


def test_a_networks_file_runs_without_a_package(tmp_path: Path) -> None:
    path = zoo.KINDS["external data"].write(tmp_path / "net.onnx")
    policy = load_policy(str(path), selection="sample", seed=3)
    assert policy.task is not None
    policy.reset(policy.task, 0)
    image = zoo.KINDS["imagenet"].write(tmp_path / "image.onnx")
    with raises_naming(PolicyError, "--rgb", f"policy package {image}"):
        load_policy(str(image))
    load_policy(str(image), rgb="unit")


def test_weights_that_are_gone_are_named(tmp_path: Path) -> None:
    path = zoo.KINDS["external data"].write(tmp_path / "net.onnx")
    (tmp_path / "net.onnx.data").unlink()
    with raises_naming(PolicyError, "net.onnx.data"):
        draft(path)


def test_a_checkpoint_with_code_in_it_is_not_run(tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> tuple[object, ...]:
            return (exec, (f"open({str(tmp_path / 'ran')!r}, 'w')",))

    path = tmp_path / "net.pt"
    path.write_bytes(pickle.dumps(Code()))
    with raises_naming(CheckpointError, path):
        load_policy(str(path))
    assert not (tmp_path / "ran").exists()


class Pickled(torch.nn.Module):
    """A user's network, whose file names this class and has no program."""

    def forward(self, goal: torch.Tensor) -> torch.Tensor:
        return torch.cat([goal, -goal], 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the exporter's internals
def test_a_pickled_network_is_exported_where_its_class_is(tmp_path: Path) -> None:
    torch.save(Pickled(), tmp_path / "net.pt")
    with raises_naming(CheckpointError, "net.pt", "torch.onnx.export(model.eval(), inputs, 'model.onnx')") as caught:
        draft(tmp_path / "net.pt")
    assert "robot-runtime policy package model.onnx" in caught.value.remedy
    inputs, names = (torch.zeros(1, 2),), {"input_names": ["goal"], "output_names": ["logits"]}
    torch.onnx.export(Pickled().eval(), inputs, tmp_path / "model.onnx", verbose=False, **names)
    manifest, _, _ = draft(tmp_path / "model.onnx")
    assert manifest.needs == ("pointgoal_with_gps_compass",)


def test_a_history_is_of_exposures_and_longer_than_the_episode_at_first(tmp_path: Path) -> None:
    kind = zoo.KINDS["history of images"]
    manifest, _, _ = draft(kind.write(tmp_path / "net.onnx"), kind.about, kind.task, kind.rgb)
    seen: list[np.ndarray] = []

    class Spy(Network):
        runtime = "spy"

        def run(self, inputs):  # type: ignore[no-untyped-def]
            seen.append(inputs["obs_img"].reshape(6, 3, 16, 16)[:, 0, 0, 0])
            return {"dist_pred": np.zeros((1, 1), np.float32), "action_pred": np.zeros((1, 5, 4), np.float32)}

    rollout = Rollout(manifest, Spy())
    mean, std = 0.485, 0.229
    for step in range(12):
        shown = patchwork(manifest, 0) | {"exposure": np.array([step * 125_000_000])}
        shown["rgb"] = np.full_like(shown["rgb"], step)
        rollout.step(prepare(manifest, shown))
    levels = [np.round((frames * std + mean) * 255).astype(int).tolist() for frames in seen]
    assert levels[0] == [0] * 6
    assert levels[4] == [0, 0, 0, 0, 2, 4]
    assert levels[11] == [1, 3, 5, 7, 9, 11], "every second frame: 125 ms apart, 250 ms asked"


def test_a_memory_that_is_shorter_than_the_task_is_refused(tmp_path: Path) -> None:
    kind = zoo.KINDS["growing cache"]
    path = kind.write(tmp_path / "net.onnx")
    manifest, facts, golden = draft(path, {"cache": {"most": 20}})
    write_package(tmp_path / "net", manifest, facts.model, golden)
    policy = load_policy(str(tmp_path / "net"))
    with raises_naming(PolicyMismatch, "memory", 20, 500):
        policy.check(manifest.task)
    policy.check(replace(manifest.task, max_steps=20))


def test_a_network_with_an_image_of_its_goal_needs_no_task_and_is_timed(tmp_path: Path) -> None:
    kind = zoo.Kind(
        [("obs_img", "float32", (1, 18, 16, 16)), ("goal_img", "float32", (1, 3, 16, 16))],
        [("dist_pred", "float32", (1, 1)), ("action_pred", "float32", (1, 5, 4))],
        rgb="imagenet",
        about=zoo.TRAJECTORY,
    )
    manifest, facts, golden = draft(kind.write(tmp_path / "net.onnx"), kind.about, kind.task, kind.rgb)
    assert (manifest.task.kind, manifest.needs) == ("pointnav", ("rgb", "imagegoal"))
    write_package(tmp_path / "net", manifest, facts.model, golden)
    assert len(time_package(load_package(tmp_path / "net"), 10).decide) == 10


def test_noise_is_of_the_seed_and_its_numbers_are_logged(tmp_path: Path) -> None:
    kind = zoo.KINDS["diffusion"]
    manifest, facts, golden = draft(kind.write(tmp_path / "net.onnx"), kind.about, kind.task, kind.rgb)
    write_package(tmp_path / "net", manifest, facts.model, golden)
    policy = load_policy(str(tmp_path / "net"))

    def drawn(seed: int) -> list[list[float]]:
        policy.reset(manifest.task, seed)
        infos = []
        for step in range(2):
            policy.act(patchwork(manifest, step))
            infos.append(json.loads(json.dumps(policy.info()["noise"]))["noise"])
        return infos

    first, again, other = drawn(3), drawn(3), drawn(4)
    assert first == again != other
    assert first[0] != first[1]
    assert len(first[0]) == 16
