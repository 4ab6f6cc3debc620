"""``robot-runtime policy``: make, inspect, validate, time and compare policy packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robot_runtime.cli.policy_export import export
from robot_runtime.cli_options import completion, options
from robot_runtime.cli_options.option_groups import grouped_options

if TYPE_CHECKING:
    from robot_runtime.policies.package.manifest import Manifest, Need
    from robot_runtime.policies.package.policy import Package
    from robot_runtime.policy import Policy
    from robot_runtime.scoring.policy_agreement import OpenLoop

_Package = Annotated[Path, typer.Argument(help="Policy package: a folder or a zip.", metavar="PACKAGE")]
_MOST_DIFFERENCES = 20


@dataclass(frozen=True)
class ExecutionOptions:
    """Execution of a network."""

    threads: Annotated[int, typer.Option(min=1, help="CPU threads of the network.")] = 1
    device: Annotated[str, typer.Option(help="auto (CUDA where there is one), cpu or cuda.")] = "auto"

    def load(self, package: Path) -> Package:
        """The package, ready to run. Raises ``RuntimeFault``."""
        from robot_runtime.policies.package.formats.network import Execution
        from robot_runtime.policies.package.policy import load_package

        execution = Execution(self.threads, self.device)  # type: ignore[arg-type]  # checked there
        return load_package(package, execution)


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    for command in (export, inspect, validate, bench, diff, package):
        groups["policy"].command(command.__name__)(command)


@grouped_options
def package(
    *,
    network: Annotated[Path, typer.Argument(help=".onnx, .pt2, TorchScript; Stable-Baselines3 zip; LeRobot folder.")],
    out: Annotated[
        Path | None, typer.Option(help="The package: a zip if it ends in .zip, else a folder. Default: NETWORK.zip.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Task preset or YAML file. Default: what the inputs fit.", autocompletion=completion.tasks),
    ] = None,
    rgb: Annotated[
        str | None, typer.Option(help="Color images of floats are raw (0..255), unit (0..1) or imagenet.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Field of the manifest, or of an input or output by name."),
    ] = None,
    about: Annotated[Path | None, typer.Option(help="YAML file with such fields, and with task and rgb.")] = None,
    framework_python: Annotated[
        Path | None, typer.Option(help="Python with Stable-Baselines3 or LeRobot, in which code of the policy is run.")
    ] = None,
) -> None:
    """Make a package of a network: roles of inputs and outputs from names, preprocessing from shapes.

    A rollout is recorded that every later load must repeat. What the file does not say is asked for, also in a YAML
    file next to the package, which can be completed and given with --about.

    Examples:
        robot-runtime policy package model.onnx
        robot-runtime policy package model.onnx --rgb imagenet --task objectnav_hm3d2022 --out objectnav.zip
        robot-runtime policy package model.onnx --set x.role=depth --set timing.period_s=0.25
        robot-runtime policy package ppo.zip --framework-python venv/bin/python --out policy.zip
    """
    from robot_runtime.common.config import read_yaml
    from robot_runtime.common.console import say
    from robot_runtime.common.creating import creating
    from robot_runtime.policies.convert.draft import OpenQuestionsError, draft, fields_of
    from robot_runtime.policies.package.writer import write_package

    target = out or network.with_suffix(".zip")
    fields = fields_of(set_ or (), {} if about is None else read_yaml(about))
    try:
        manifest, facts, golden = draft(network, fields, task, rgb, framework_python)
    except OpenQuestionsError as error:
        form = about or target.with_suffix(".about.yaml")
        if not form.exists():
            with creating(form) as file:
                file.write_text(error.form(), encoding="utf-8")
        error.remedy += f"; or complete {form}, and add --about {form}"
        raise
    written = write_package(target, manifest, facts.model, golden, facts.weights)
    say(f"{target}: {written.name}, in task {written.task.name}")
    say(f"next: robot-runtime run --policy {target}")


@grouped_options
def inspect(
    *,
    policy: Annotated[str, typer.Argument(help="Policy package, or any agent that `run --agent` takes.")],
    agent: options.AgentOptions,
    json: options.Json = None,
) -> None:
    """Say what a package is, without running anything in it, hashes checked; of other policies what they declare.

    A server of this project declares the package that it serves.

    Examples:
        robot-runtime policy inspect my_policy.zip
        robot-runtime policy inspect gym:my_model.py:load
        robot-runtime policy inspect ws://192.168.1.20:8080
    """
    from robot_runtime.common import config
    from robot_runtime.common.console import console
    from robot_runtime.common.tables import facts_table
    from robot_runtime.policies.package.files import is_package, read_package
    from robot_runtime.policies.package.manifest import Manifest

    if is_package(Path(policy)):
        declared: Mapping[str, Any] | None = config.unparse(read_package(Path(policy)).manifest)
    else:
        with closing(agent.load(policy)) as loaded:
            declared, facts = loaded.declared, _declared(loaded)
    if declared is not None:
        facts = _about(config.parse(declared, Manifest, policy))
    console.print(facts_table(facts))
    if json is not None:
        from robot_runtime.recording.json_output import write_json

        write_json(json, declared or facts)


@grouped_options
def validate(
    *,
    package: _Package,
    task: Annotated[
        str | None,
        typer.Option(help="Also check that it fits this task preset or YAML file.", autocompletion=completion.tasks),
    ] = None,
    execution: ExecutionOptions,
    json: options.Json = None,
) -> None:
    """Run a package over its golden rollout, as every load does, and say how nearly it repeats it.

    Examples:
        robot-runtime policy validate my_policy.zip
        robot-runtime policy validate my_policy.zip --task pointnav_gps_compass
    """
    from robot_runtime.common.console import say
    from robot_runtime.policies.package.policy import PackagePolicy
    from robot_runtime.recording.json_output import write_json

    loaded = execution.load(package)
    found = loaded.agreement
    say(
        f"{loaded.manifest.name}: the golden rollout of {found.steps} steps is repeated: largest difference of logits "
        f"{found.logit_difference:.2g}, states {found.state_difference:.2g}, inputs {found.input_difference:.2g}; the "
        f"same action at {found.same_actions} of {found.steps} ({loaded.network.runtime})"
    )
    if task is not None:
        from robot_runtime.policies.stepping import check_policy
        from robot_runtime.tasks.task import load_task

        check_policy(PackagePolicy(loaded), load_task(task))
        say(f"it fits task {task}")
    write_json(json, {"policy": loaded.manifest.name, "runtime": loaded.network.runtime, **asdict(found)})


@grouped_options
def bench(
    *,
    package: _Package,
    steps: Annotated[int, typer.Option(min=10, help="Decisions to time.")] = 100,
    execution: ExecutionOptions,
    json: options.Json = None,
) -> None:
    """Time a package's decisions on this machine, on noise in the shapes of its task's observations.

    Example:
        robot-runtime policy bench my_policy.zip --steps 200
    """
    import numpy as np
    from rich.table import Table

    from robot_runtime.common.clock import Stopwatch
    from robot_runtime.common.console import console, say
    from robot_runtime.policies.package.speed import time_package
    from robot_runtime.recording.json_output import write_json

    timer = Stopwatch()
    loaded = execution.load(package)
    ready_s = timer.elapsed_s()
    times = time_package(loaded, steps)
    table = Table(title=f"{loaded.manifest.name}: {loaded.network.runtime}", title_justify="left", box=None)
    for heading in ("ms per step", "p50", "p95", "p99"):
        table.add_column(heading, justify="left" if heading == "ms per step" else "right")
    parts = {"preprocess": times.preprocess, "network": times.network, "decide": times.decide}
    rows = {name: np.percentile(values, (50, 95, 99)) for name, values in parts.items()}
    for name, values in rows.items():
        table.add_row(name, *(f"{value:.2f}" for value in values))
    console.print(table)
    say(f"{steps} decisions; loading and proving the package took {ready_s:.2f} s")
    write_json(json, {"steps": steps, "ready_s": ready_s, "p50_p95_p99_ms": rows})


@grouped_options
def diff(
    *,
    policy: Annotated[str, typer.Argument(help="Policy package, or any agent that `run --agent` takes.")],
    others: Annotated[
        list[Path], typer.Argument(help="Logs or folders of them to decide again; or one other package.")
    ],
    agent: options.AgentOptions,
    json: options.Json = None,
) -> None:
    """Decide again what a log saw and compare actions and logits; or say in what two packages differ.

    A package selects its actions as it did in each log, unless --agent-arg says otherwise. Exits with 1 if anything
    differs.

    Examples:
        robot-runtime policy diff my_policy.zip logs/my_run
        robot-runtime policy diff my_policy.zip logs/my_run --agent-arg selection=argmax
        robot-runtime policy diff my_policy.zip retrained.zip
    """
    from robot_runtime.policies.package.files import is_package
    from robot_runtime.recording.json_output import write_json

    if len(others) == 1 and is_package(others[0]):
        found = _diff_packages(Path(policy), others[0])
    else:
        with closing(agent.load(policy)) as loaded:
            chosen = options.agent_arguments(agent.agent_arg).keys() & {"selection", "temperature", "seed"}
            found = _diff_logs(loaded, others, as_logged=not chosen)
    write_json(json, found)
    if found["differences"] or found["same_actions"] < found["steps"]:
        raise typer.Exit(1)


def _diff_logs(policy: Policy, paths: list[Path], as_logged: bool) -> dict[str, Any]:
    from robot_runtime.common.console import console, progress_bar, say
    from robot_runtime.policies.package.policy import PackagePolicy
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.recording.reader import LogReader
    from robot_runtime.scoring.policy_agreement import logged_selection, open_loop

    logs = find_logs(paths)
    steps = same = 0
    lines: list[str] = []
    with progress_bar() as progress:
        bar = progress.add_task("deciding", total=len(logs), note="")
        for path in logs:
            with LogReader(path) as log:
                if as_logged and isinstance(policy, PackagePolicy):
                    policy.select(logged_selection(log) or policy.package.manifest.selection)
                again = open_loop(log, policy)
            steps += len(again.steps)
            same += len(again.steps) - len(again.differences)
            lines += _describe_differences(path.name, again)
            progress.advance(bar)
    for line in lines[:_MOST_DIFFERENCES]:
        say(line)
    if len(lines) > _MOST_DIFFERENCES:
        console.print(f"... and {len(lines) - _MOST_DIFFERENCES} more")
    share = f"{100 * same / steps:.4g} %" if steps else "nothing to compare"
    say(f"{policy.name}: the same action at {same} of {steps} steps: {share}")
    return {"steps": steps, "same_actions": same, "differences": lines}


def _describe_differences(name: str, again: OpenLoop) -> Iterator[str]:
    """Lines about the differences from a log; none if the policy repeated the log."""
    if not again.differences and not again.logit_difference and again.answer_same is not False:
        return
    if again.same_source is False:
        yield f"{name}: decided by {again.source_logged}, now by {again.source_now}"
    for step in again.differences:
        apart = step.logits is not None and step.logits.max_abs > 0
        distance = f", {step.logits.kl_nats:.2g} nats apart" if apart and step.logits is not None else ""
        yield f"{name}: step {step.index}: {step.logged} then, {step.now} now{distance}"
    if again.logit_difference:
        yield f"{name}: logits differ by up to {again.logit_difference:.3g}"
    if again.answer_same is False:
        yield f"{name}: it answers the question otherwise"
    if again.differences and not again.follows:
        yield f"{name}: it does not accept actions that it did not choose: later differences may follow from the first"
    if again.deterministic is False:
        yield f"{name}: asked a second time with the same seed, its decisions differ again: it is not deterministic"


def _diff_packages(first: Path, second: Path) -> dict[str, Any]:
    from robot_runtime.common.console import console, say
    from robot_runtime.policies.package.files import read_package
    from robot_runtime.policies.package.policy import load_package
    from robot_runtime.scoring.policy_agreement import manifest_differences, network_difference

    a = read_package(first)
    b = load_package(second)
    lines = [f"{name}: {left} | {right}" for name, left, right in manifest_differences(a, read_package(second))]
    for line in lines:
        say(line)
    if a.manifest.inputs != b.manifest.inputs or a.manifest.outputs != b.manifest.outputs:
        console.print("the networks have different inputs or outputs: not compared")
        return {"steps": 0, "same_actions": 0, "differences": [*lines, "the networks have different inputs or outputs"]}
    found = network_difference(a, b)
    say(
        f"{second} on the golden rollout of {first}: the same action at {found.same_actions} of {found.steps} steps, "
        f"logits differ by up to {found.logit_difference:.3g}"
    )
    return {"steps": found.steps, "same_actions": found.same_actions, "differences": lines}


def _about(manifest: Manifest) -> dict[str, str]:
    task, camera, model = manifest.task, manifest.task.camera, manifest.model
    tilt = f", tilted {camera.tilt_deg:g}°" if camera.tilt_deg else ""
    depth = f"{camera.depth_min_m:g} to {camera.depth_max_m:g} m{', normalized' if camera.depth_normalized else ''}"
    magnitudes = task.magnitudes
    selection = manifest.selection
    opset = "" if model.opset is None else f", opset {model.opset}"
    return {
        "policy": manifest.name,
        "task": f"{task.name} ({task.kind}), {task.max_steps} steps",
        "actions": ", ".join(f"{number} {action}" for number, action in enumerate(task.actions)),
        "magnitudes": f"{magnitudes.forward_m:g} m, turn {magnitudes.turn_deg:g}°, look {magnitudes.tilt_deg:g}°",
        "camera": f"{camera.width}x{camera.height}, {camera.hfov_deg:g}° wide, {camera.height_m:g} m high{tilt}",
        "depth": f"{depth}, holes {camera.depth_holes}",
        "selection": f"{selection.mode}, temperature {selection.temperature:g}, seed {selection.seed}",
        "network": f"{model.file}: {model.format}{opset}, runs from {model.minimum_runtime} on",
        "needs": "\n".join(_need(need, manifest) for need in manifest.inputs),
        "outputs": "\n".join(f"{t.name}: {t.role}, {t.dtype} {list(t.shape)}" for t in manifest.outputs),
        "sources": "\n".join(f"{s.what} ({s.licence}) {s.sha256 or s.location}" for s in manifest.sources),
        "converter": f"{manifest.converter.name} {manifest.converter.version}",
        "proof": f"by its writer: {manifest.proof.same_actions} of {manifest.proof.steps} steps the same action as "
        f"{manifest.proof.against}, logits within {manifest.proof.max_logit_difference:.2g}; not checked here, "
        "`policy validate` does",
        "golden": f"{manifest.golden.steps} steps, logits within {manifest.golden.logit_atol:g}",
    }


def _declared(policy: Policy) -> dict[str, str]:
    """What a policy that is not a package says of itself."""
    from robot_runtime.tasks.kind import sensor_of

    task, needs = policy.task, list(policy.needs)
    if task is not None:
        sensors = {name: sensor_of(task, name) for name in needs}
        needs = [f"{name}: {s.dtype.__name__} {list(s.shape(task))}, {s.doc}" for name, s in sensors.items()]
    return {
        "policy": policy.name,
        "task": "any" if task is None else f"{task.name} ({task.kind}), {task.max_steps} steps",
        "kinds of tasks": ", ".join(policy.kinds) or "any",
        "needs": "\n".join(needs) or ("the simulator's state" if policy.privileged else "all that the task shows"),
    }


def _need(need: Need, manifest: Manifest) -> str:
    """``name: sensor, type [shape]``, its history, and the operations that make it."""
    from robot_runtime.common import config

    text = f"{need.name}: {need.role}, {need.dtype} {['grows' if side is None else side for side in need.shape]}"
    if need.count > 1:
        text += f", the last {need.count}" + (f", {need.period_s:g} s apart" if need.period_s else "")
    for one in manifest.preprocess:
        if {need.name, need.role} & set(one.keys):
            fields = {key: value for key, value in config.unparse(one).items() if key not in ("op", "keys")}
            text += f"; {one.op}" + "".join(f" {key} {value}" for key, value in fields.items())
    return text
