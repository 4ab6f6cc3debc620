"""A manifest drafted from a network's file: roles from names and shapes, preprocessing from shapes, a golden rollout.

What the file cannot say is asked for, never guessed.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_runtime.common import config
from robot_runtime.common.version import VERSION
from robot_runtime.errors import ConfigError, PolicyError
from robot_runtime.policies.convert.network_facts import NetworkFacts, Port, read_facts
from robot_runtime.policies.package import manifest as m
from robot_runtime.policies.package.files import framework_of
from robot_runtime.policies.package.formats.network import Execution, open_network
from robot_runtime.policies.package.golden import Golden, record
from robot_runtime.policies.package.observations import patchwork
from robot_runtime.policies.package.writer import UNKNOWN_SHA256, UNPROVEN, golden_file
from robot_runtime.tasks.kind import has_sensor
from robot_runtime.tasks.task import Task, load_task, with_sensors

STEPS = 8
"""Length of the rollout that is recorded, with an episode's start in the middle."""

_GOAL = "pointgoal_with_gps_compass"
_IMAGE = {"rgb": 3, "depth": 1, "semantic": 1, "imagegoal": 3}
_SUFFIXES = {"onnx": ".onnx", "torch_export": ".pt2", "torchscript": ".ts"}
_OPTIONS = ("task", "rgb")
_NAMES = config.read_yaml(Path(__file__).with_name("names.yaml"))


Asked = dict[str, tuple[tuple[str, ...], str]]
"""Question -> keys of the field that says it, and what it may be."""


class OpenQuestionsError(PolicyError):
    """A network's file does not say all of its package."""

    def __init__(self, path: Path, asked: Asked) -> None:
        self.path, self.asked = path, asked
        fields = [(".".join(keys), value) for keys, value in asked.values()]
        said = [f"--{key} {value}" if key in _OPTIONS else f"--set {key}={value}" for key, value in fields]
        super().__init__(f"{path}: does not say {'; '.join(asked)}", "; ".join(dict.fromkeys(said)))

    def form(self) -> str:
        """The questions as YAML to complete, for ``about``."""
        notes = {keys: f"  # {question}: {value}" for question, (keys, value) in self.asked.items()}
        lines = [f"# What {self.path} does not say: complete it, and give it with --about."]
        for (key, *inner), note in sorted(notes.items()):
            head = f"{json.dumps(key)}:"
            lines += [*([] if head in lines else [head]), f"  {inner[0]}:{note}"] if inner else [head + note]
        return "\n".join([*lines, ""])


def draft(
    path: Path,
    about: Mapping[str, Any] | None = None,
    task: str | None = None,
    rgb: str | None = None,
    python: Path | None = None,
) -> tuple[m.Manifest, NetworkFacts, Golden]:
    """The manifest, the file's content, and a rollout of the network that is recorded now.

    Args:
        path: path of the network's file, or of a policy of another framework.
        about: fields of the manifest instead of the draft's, and of inputs and outputs under their names; ``task`` and
            ``rgb`` may be in it, too. What is None is not said.
        task: task preset or YAML file; None for one that fits the inputs.
        rgb: numbers of a color image of floats: ``raw`` 0..255, ``unit`` 0..1, ``imagenet`` standardized.
        python: interpreter that has the framework of such a policy, which gives the rollout, too.

    Raises:
        OpenQuestionsError: something has to be said by a person, with the options that say it.
        PolicyError: the file does not hold a network.
        ConfigError: a field of ``about`` is invalid, or there is no such task.
    """
    asked: Asked = {}
    own: dict[str, Any] = {}
    original = None
    if (framework := framework_of(path)) is None:
        facts = read_facts(path)
    else:
        from robot_runtime.policies.convert.proof import read_trained

        facts, own, original = read_trained(path, framework, python)
    about = _merged(own, _said(about or {}))
    named = {key: about.pop(key) for key in _OPTIONS if isinstance(about.get(key), str)}
    task, rgb = task or named.get("task"), rgb or named.get("rgb")
    if rgb not in (None, *_NAMES["rgb"]):
        raise ConfigError(f"there are no colors {rgb!r}", f"choose {', '.join(_NAMES['rgb'])}")
    document = _document(facts, about, task, rgb, asked)
    if asked:
        raise OpenQuestionsError(path, asked)
    manifest = config.parse(document, m.Manifest, f"the draft of {path}")
    with closing(open_network(manifest, facts.model, Execution(device="cpu"), facts.weights)) as network:
        shown = [patchwork(manifest, seed) for seed in range(STEPS)]
        golden = record(manifest, network, shown, (0, STEPS // 2), original=f"itself, {network.runtime}")
    if original is not None and python is not None:
        from robot_runtime.policies.convert.proof import run_original

        golden = run_original(python, original, manifest, golden)
    return manifest, facts, golden


def fields_of(pairs: Sequence[str], about: Mapping[str, Any]) -> dict[str, Any]:
    """``about`` with the fields of ``KEY.KEY=VALUE``, each value in YAML. Raises ``ConfigError``."""
    fields: dict[str, Any] = dict(about)
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair!r} is not KEY=VALUE", "write it like --set depth.shape=[1,64,64,1]")
        value = config.parse_yaml(text, f"--set {pair}")
        for key in reversed(path.split(".")):
            value = {key: value}
        fields = _merged(fields, value)
    return fields


def _document(
    facts: NetworkFacts, about: Mapping[str, Any], task_name: str | None, rgb: str | None, asked: Asked
) -> dict[str, Any]:
    """The manifest as a document; ``asked`` gets what nobody says, with the field that says it."""
    names = [port.name for port in (*facts.inputs, *facts.outputs)]
    told: dict[str, dict[str, Any]] = {name: about.get(name, {}) for name in names}
    ports = [replace(port, shape=tuple(told[port.name].get("shape", port.shape))) for port in facts.inputs]
    batch = next((port.shape[0] for port in ports if port.shape and isinstance(port.shape[0], str)), "")
    roles = {port.name: told[port.name].get("role", _role_in(port)) for port in ports}
    out = _states_out([port for port in ports if roles[port.name] == m.RECURRENT], facts.outputs)
    out |= {name: told[name]["role"] or m.UNUSED for name in names if name not in roles and "role" in told[name]}
    unknown = [name for name in out if told[name].get("role") == ""]
    asked |= {f"what its output {name!r} is": ((name, "role"), ", ".join(m.DECISIONS)) for name in unknown}
    out = {port.name: out.get(port.name) or _by_name(port.name, "outputs") for port in facts.outputs}
    task = _task(task_name, {*roles.values(), *out.values()}, asked)
    for port in facts.outputs:
        out[port.name] = out[port.name] or _by_shape(port, len(task.actions), bool({*out.values()} & {*m.DECISIONS}))
        sides = _fixed(port, batch, 1) or [1]
        fits = len(task.actions) in (math.prod(sides), sides[-1])
        if out[port.name] == m.LOGITS and not fits and "task" not in about:
            asked[f"which actions its {sides[-1]} logits are"] = ("task",), "TASK with as many actions"
    inputs, preprocess = [], list[dict[str, Any]]()
    for port in ports:
        need = {"name": port.name, "role": roles[port.name], "dtype": port.dtype}
        need["shape"] = _fixed(port, batch, None if need["role"] == m.RECURRENT else 1)
        if not need["role"]:
            asked[f"what its input {port.name!r} is"] = (port.name, "role"), "SENSOR"
        if not port.shape:
            asked[f"the shape of {port.name!r}"] = (port.name, "shape"), "[1,2]"
        elif need["role"] in _IMAGE:
            steps, colors = _image(need, port, task)
            if colors and rgb is None and "preprocess" not in about:
                asked[f"what the numbers of {port.name!r} are"] = ("rgb",), "raw (0..255), unit (0..1) or imagenet"
            steps[colors:colors] = _NAMES["rgb"][rgb or "raw"] if colors else ()
            preprocess += [{"keys": [port.name], **step} for step in steps]
        inputs.append(need | told[port.name])
    outputs = [
        {"name": port.name, "role": out[port.name], "dtype": port.dtype,
         "shape": _fixed(port, batch, None if out[port.name] in (m.RECURRENT, m.UNUSED) else 1)} | told[port.name]
        for port in facts.outputs
    ] or [{"name": "logits", "role": m.LOGITS, "dtype": "float32", "shape": [1, len(task.actions)]}]  # fmt: skip
    if {m.VELOCITY, m.WAYPOINT, m.TRAJECTORY} & {*out.values()} and "timing" not in about:
        asked["how long its motions take"] = ("timing", "period_s"), "0.25"
    sensors = [*roles.values(), *([m.EXPOSURE] if any(one.get("period_s") for one in told.values()) else [])]
    document = {
        "schema": m.SCHEMA,
        "name": re.sub(r"[^A-Za-z0-9._+-]", "-", facts.path.stem),
        "task": config.unparse(with_sensors(task, [role for role in sensors if has_sensor(task, role)])),
        "sources": [{"what": f"network {facts.path.name}", "licence": "not stated"}],
        "converter": {"name": "robot-runtime policy package", "version": VERSION},
        "proof": config.unparse(UNPROVEN),
        "model": {"file": f"model{_SUFFIXES[facts.format]}", "format": facts.format, "sha256": UNKNOWN_SHA256,
                  "minimum_runtime": facts.minimum_runtime, "opset": facts.opset,
                  "data": dict.fromkeys(facts.weights, UNKNOWN_SHA256)},
        "inputs": inputs,
        "outputs": outputs,
        "preprocess": preprocess,
        "selection": {"mode": "argmax"},
        "golden": config.unparse(golden_file()) | ({"logit_atol": 0.05, "state_atol": 0.05} if facts.quantized else {}),
    }  # fmt: skip
    return _merged(document, {key: value for key, value in about.items() if key not in names})


def _merged(document: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a user's fields in place of its own."""
    result = dict(document)
    for key, value in about.items():
        both = isinstance(result.get(key), Mapping) and isinstance(value, Mapping)
        result[key] = _merged(result[key], value) if both else value
    return result


def _said(about: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without what is None in a form that is not complete."""
    fields = {key: _said(value) if isinstance(value, Mapping) else value for key, value in about.items()}
    return {key: value for key, value in fields.items() if value not in (None, {})}


def _role_in(port: Port) -> str:
    role, shape = _by_name(port.name, "inputs"), port.shape
    image = len(shape) > 2 and len([side for side in shape if side != 1]) > 1
    if role == _GOAL and shape:
        return "imagegoal" if image else "objectgoal" if port.dtype.startswith("int") else role
    if role or not shape:
        return "" if role in _IMAGE and shape and not image else role
    if image:
        return next((name for name in ("rgb", "depth") if _IMAGE[name] in (shape[-1], shape[-3])), "")
    return _GOAL if shape[-1] == 2 and port.dtype.startswith("float") else ""


def _by_name(name: str, table: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return next((role for pattern, role in _NAMES[table] if re.search(pattern, plain)), "")


def _by_shape(port: Port, actions: int, decided: bool) -> str:
    sides = [side for side in port.shape if isinstance(side, int) and side != 1]
    size = math.prod(sides)
    if decided or size == 1:
        return m.VALUE if size == 1 else m.UNUSED
    if size != actions and len(sides) == 2 and sides[1] in (2, 3, 4):
        return m.TRAJECTORY
    return m.LOGITS if size == actions else {2: m.VELOCITY, 3: m.WAYPOINT}.get(size, m.LOGITS)


def _states_out(states: Sequence[Port], outputs: Sequence[Port]) -> dict[str, str]:
    """The outputs that are the states' next values, in order: of the same type and shape, those so named first."""
    found: dict[str, str] = {}
    for state in states:
        for port in sorted(outputs, key=lambda port: _by_name(port.name, "outputs") != m.RECURRENT):
            same = [a == b or str in (type(a), type(b)) for a, b in zip(port.shape, state.shape, strict=False)]
            alike = port.dtype == state.dtype and len(port.shape) == len(state.shape) and all(same)
            if port.name not in found and alike:
                found[port.name] = m.RECURRENT
                break
    return found


def _task(name: str | None, roles: set[str], asked: Asked) -> Task:
    if name is not None:
        return load_task(name)
    unsaid = {role: task for role, task in _NAMES["asked"].items() if role in roles}
    asked |= {f"which task its {role} is of": (("task",), f"{task}, or another") for role, task in unsaid.items()}
    moves = {m.TRAJECTORY, m.VELOCITY, m.WAYPOINT} & roles
    return load_task(next(iter(unsaid.values()), "pointnav_trajectory" if moves else "pointnav_gps_compass"))


def _fixed(port: Port, batch: str, free: int | None) -> list[Any]:
    """The shape with 1 for the batch, and ``free`` for every other side that is not fixed."""
    return [side if isinstance(side, int) else 1 if side == batch else free for side in port.shape]


def _image(need: dict[str, Any], port: Port, task: Task) -> tuple[list[dict[str, Any]], int]:
    """The operations that make an image, and where among them colors are scaled, 0 if never.

    ``need`` gets its shape and count; a side that is not fixed is the camera's.
    """
    camera, channels, shape = task.camera, _IMAGE[need["role"]], list(port.shape)
    last = shape[-1] == channels
    axes = (len(shape) - 3, len(shape) - 2) if last else (len(shape) - 2, len(shape) - 1)
    for axis, side in zip(axes, (camera.height, camera.width), strict=True):
        shape[axis] = shape[axis] if isinstance(shape[axis], int) else side
    sizes: list[int] = [side if isinstance(side, int) else 1 for side in shape]
    height, width = (sizes[axis] for axis in axes)
    need |= {"shape": sizes, "count": math.prod(sizes) // (height * width * channels)}
    kernel = "torch_nearest" if need["role"] == "semantic" else "torch_area"
    steps: list[dict[str, Any]] = []
    if abs(width * camera.height - height * camera.width) > max(camera.height, camera.width):
        scale = max(height / camera.height, width / camera.width)
        size = math.ceil(round(min(camera.height, camera.width) * scale, 6))
        steps.append({"op": "resize_shortest_edge", "size": size, "kernel": kernel})
        steps.append({"op": "center_crop", "height": height, "width": width})
    else:
        steps.append({"op": "resize", "height": height, "width": width, "kernel": kernel})
    if need["role"] == "semantic":
        steps.append({"op": "cast", "dtype": port.dtype})
    colors = len(steps) if channels == 3 and port.dtype != "uint8" else 0
    return steps if last else [*steps, {"op": "channels_first"}], colors
