"""``robot-runtime policy package``: a network's file becomes a package."""

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options import completion
from robot_runtime.cli_options.option_groups import grouped_options


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
