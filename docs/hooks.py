"""MkDocs hooks: pages generated from the code, and links into the repository."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from docstring_roles import markdown_of
from griffe import Docstring, DocstringSectionKind
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

API = {
    "The loop": ["env", "runtime", "policy", "sensors", "safety", "records", "gym", "errors"],
    "Devices": ["hal", "hal.device", "hal.base", "hal.head", "hal.camera", "hal.localizer", "hal.manipulation",
                "hal.robot", "hal.simulation", "robots.loader", "conformance"],
    "Actions and tasks": ["actions.discrete", "actions.timed", "tasks.task", "tasks.episode", "datasets"],
    "Extensions": ["common.plugins", "tasks.kind", "tasks.sensor", "datasets.formats",
                   "policies.baselines.kind_oracle"],
    "Scenes": ["scenes.scene", "scenes.occupancy_map", "scenes.geodesic"],
    "Policies": ["policies", "policies.package.policy"],
    "Logs and scores": ["recording.reader", "recording.writer", "metrics.episode_metrics", "metrics.measures",
                        "scoring.report.panels", "metrics.functional.spl",
                        "metrics.functional.success", "metrics.functional.dtw", "metrics.functional.fidelity",
                        "metrics.functional.path"],
    "Foundations": ["common.clock", "common.geometry", "common.transforms", "common.config"],
}  # fmt: skip

YAML_FILES = {
    "Robot (`launch/robots`)": ["robot_runtime/robots/loader.py", "robot_runtime/motion"],
    "Options of the simulated robot": ["sim_bridge/robot", "sim_bridge/noise"],
    "Options of the fake robot": ["drivers/fake", "robot_runtime/hal/fault_schedule.py"],
    "Options of a LoCoBot over ROS 1": ["drivers/ros", "drivers/ros_locobot"],
    "Options of a robot over ROS 2": ["drivers/ros2"],
    "Task (`launch/tasks`)": ["robot_runtime/tasks"],
    "Camera (`launch/cameras`)": ["robot_runtime/imaging", "robot_runtime/hal/lens.py", "drivers/azure_kinect",
                                  "drivers/realsense", "drivers/opencv_camera", "drivers/replay"],
    "Camera mount (`launch/mounts`)": ["robot_runtime/robots/camera_mount.py", "robot_runtime/common/transforms.py"],
    "Localizer (`launch/localizers`)": ["robot_runtime/localization", "drivers/marvelmind", "drivers/apriltag"],
    "Object tracker": ["drivers/object_tracker"],
    "Scene (`scene.yaml`, `map.yaml`, `tags.yaml`)": ["robot_runtime/scenes", "sim_bridge/physics"],
    "Policy package (`policy.yaml`)": ["robot_runtime/policies/package", "robot_runtime/policy.py"],
    "Calibration files": ["robot_runtime/robots/calibration_file.py", "robot_runtime/robots/action_errors.py",
                          "robot_runtime/robots/corrected_head.py", "robot_runtime/robots/corrected_odometry.py"],
    "Verdicts on a run (`NAME.evidence.yaml`)": ["robot_runtime/verdicts.py"],
}  # fmt: skip
"""Folders and files whose strict dataclasses describe a kind of YAML file."""

_NO_INPUTS = {"source", "sha256", "digest", "location", "device", "record_to"}
"""Attributes whose descriptions have a file that is not read by that name."""

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#:]+)(?:#[^)]*)?\)")
_FENCE = re.compile(r"^```(?P<language>\w+) file=(?P<name>\S+)$", re.MULTILINE)
_CONSOLE = re.compile(r"^```console \w+$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated reference pages.

    Args:
        files: the site's files.
        config: the site's configuration.
    """
    os.environ.update(COLUMNS="100", NO_COLOR="1", TERM="dumb")
    for path, text in (
        ("reference/commands.md", "\n".join(_commands())),
        ("reference/python-api.md", "\n".join(_api())),
        ("reference/log-channels.md", "\n".join(_channels())),
        ("reference/yaml-files.md", "\n".join(_yaml_files())),
    ):
        files.append(File.generated(config, path, content=text))
    files.append(File.generated(config, "llms.txt", content="\n".join(_llms(config)) + "\n"))
    return files


def _llms(config: MkDocsConfig) -> Iterator[str]:
    """The index that language models read (llmstxt.org): every page with its first sentence."""
    yield f"# {config.site_name}\n\n> {config.site_description}"
    yield from _sections(config.nav or [], Path(config.docs_dir), 2)


def _sections(entries: list[Any], folder: Path, level: int) -> Iterator[str]:
    for entry in entries:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            yield f"\n{'#' * level} {title}\n"
            yield from _sections(target, folder, level + 1)
        else:
            page = folder / target
            text = page.read_text(encoding="utf-8") if page.is_file() else ""
            first = re.search(r"^(?!#|!\[|```|\|)\S[^\n]*(?:\n\S[^\n]*)*", text, re.MULTILINE)
            words = _LINK.sub(r"\g<text>", " ".join(first[0].split())) if first else "Generated from the code."
            yield f"- [{title}]({Path(target).with_suffix('.html')}): {words.split('. ')[0].rstrip('.')}."


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links out of the documentation into text, and named code blocks into titled ones.

    Args:
        markdown: the page's text.
        page: where it stands.
        config: the site's configuration.
        files: the site's files.
    """
    here, root = Path(config.docs_dir, page.file.src_uri).parent, Path(config.docs_dir).resolve()

    def inside(link: re.Match[str]) -> str:
        target = (here / link["target"]).resolve()
        if root in target.parents:
            return link[0]
        text = link["text"].strip("`")
        return f"`{target.relative_to(root.parent)}`" if text in (target.name, str(target)) else link["text"]

    markdown = _LINK.sub(inside, markdown)
    markdown = _FENCE.sub(r'```\g<language> title="\g<name>"', markdown)
    return _CONSOLE.sub("```console", markdown)


def _commands() -> Iterator[str]:
    from robot_runtime.cli.main import build_app

    yield "# Commands\n\nGenerated from the commands' own `--help`.\n"
    app = build_app()
    for name, command in sorted(app.commands.items()):
        yield from _command(f"robot-runtime {name}", command)


def _command(name: str, command: Any) -> Iterator[str]:
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    if not subcommands or command.invoke_without_command:
        with command.make_context(name, [], resilient_parsing=True) as context:
            text = re.sub(r"\x1b\[[0-9;]*m", "", command.get_help(context)).rstrip()
        yield f"## {name}\n\n```text\n{text}\n```\n"
    for subname, subcommand in sorted(subcommands.items()):
        yield from _command(f"{name} {subname}", subcommand)


def _api() -> Iterator[str]:
    import robot_runtime

    yield "# Python API\n\nThe names that `robot_runtime` offers itself:\n"
    yield ", ".join(f"`{name}`" for name in sorted(getattr(robot_runtime, "__all__", []))) + "\n"
    for title, modules in API.items():
        yield f"\n# {title}\n"
        for module in modules:
            yield f"\n::: robot_runtime.{module}\n"


def _yaml_files() -> Iterator[str]:
    yield (
        "# Files that are read\n\nEvery YAML file is read into a typed dataclass: its attributes are the keys. An "
        "unknown key, a wrong type, NaN or infinity is an error that names file and field. A number outside its range "
        "is refused with its unit and the likely slip: millimeters for meters, radians for degrees, milliseconds for "
        "seconds.\n"
    )
    yield from _other_files()
    for title, places in YAML_FILES.items():
        yield f"\n## {title}\n"
        for name in sorted(name for place in places for name in _option_classes(ROOT / place)):
            yield f"\n::: {name}\n    options: {{heading_level: 3, members: [], skip_local_inventory: true}}\n"
            yield from _ranges(name)


def _other_files() -> Iterator[str]:
    """Tables of the files that are no YAML, and of the files that are read with another."""
    from robot_runtime.datasets.formats import usable_formats
    from robot_runtime.recording.verdict_files import SUFFIX
    from robot_runtime.scenes.scene import VIEW_POINTS
    from robot_runtime.scenes.tag_map import FILE_NAME as TAG_MAP

    yield "\n## Episode files\n\n| format | kind of task | read with `val.json.gz` |\n|---|---|---|"
    for item in usable_formats():
        beside = [path.name for path in item.companions(Path("val.json.gz"))]
        yield f"| {item.title} | {item.kind} | {', '.join(f'`{name}`' for name in [*beside, 'content/*.json.gz'])} |"
    yield "\n`content/` counts where the split has no episodes. Positions are meters; angles are those of the source.\n"
    yield "\n## Files beside a file\n\n| file | read with | without it |\n|---|---|---|"
    yield f"| `{VIEW_POINTS}` | `scene.yaml` | no object has view points; ObjectNav names the command that makes them |"
    yield f"| `{TAG_MAP}` | `scene.yaml`, where a localizer has `tags: scene` | the localizer is refused |"
    yield f"| `NAME{SUFFIX}` | `NAME.mcap`, a log | scores are without verdicts |"
    yield (
        "\n## Files that a file names\n\nA file that is named and not there is an error with both names.\n\n"
        "| key | of | what it is |\n|---|---|---|"
    )
    for title, places in YAML_FILES.items():
        for name in sorted(name for place in places for name in _option_classes(ROOT / place)):
            for field, text in _named_files(name):
                yield f"| `{field}` | {title.partition(' (')[0]}, `{name.rpartition('.')[2]}` | {text} |"


def _named_files(name: str) -> Iterator[tuple[str, str]]:
    """The text attributes of a dataclass that name a file, with their descriptions."""
    module, _, class_name = name.rpartition(".")
    cls = getattr(importlib.import_module(module), class_name)
    hints = get_type_hints(cls)
    for field, text in _attributes(cls).items():
        is_text = "str" in str(hints.get(field)) and field not in _NO_INPUTS
        if is_text and re.search(r"\b(file|path|preset|PNG)\b", text):
            yield field, text.replace("``", "`")


def _ranges(name: str) -> Iterator[str]:
    """A table of the numbers with units of a dataclass, and the range of each."""
    from robot_runtime.common import quantities

    module, _, class_name = name.rpartition(".")
    found = quantities.quantities_of(getattr(importlib.import_module(module), class_name))
    table = ((field, kind) for field, (kind, _) in found.items() if kind is not None)
    rows = [f"| `{field}` | {kind.name} | {kind.range_text.removesuffix(' of 1')} |" for field, kind in table]
    if rows:
        yield "\n| number | quantity | range |\n|---|---|---|"
        yield from rows
        yield ""


def _option_classes(place: Path) -> Iterator[str]:
    """Dotted names of the public dataclasses that refuse unknown keys."""
    for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            bases = set(map(ast.unparse, node.bases)) if isinstance(node, ast.ClassDef) else set()
            if not getattr(node, "name", "_").startswith("_") and {"config.Strict", "Strict", "ClosedDict"} & bases:
                yield f"{module}.{node.name}"


def _channels() -> Iterator[str]:
    from robot_runtime.hal.streams import STREAMS
    from robot_runtime.recording.channels import channels, poses_channel
    from robot_runtime.recording.step_form import step_form
    from robot_runtime.tasks.kind import KINDS
    from robot_runtime.tasks.state import StateFormat

    rates = {stream.topic: stream for stream in STREAMS.values()}
    yield (
        "# Log channels\n\nA log is one MCAP file per episode. Color, poses, transforms and path carry "
        "Foxglove's protobuf schemas, depth and map ROS 2's; everything else is JSON with a JSON schema, in which null "
        "stands for what a record lacks, and the strings Infinity, -Infinity and NaN for these numbers. Stamps are "
        "nanoseconds of the robot's clock.\n"
    )
    for channel in (*channels(StateFormat()), poses_channel("/localizer/SOURCE")):
        yield f"\n## `{channel.topic}`\n\n`{channel.schema_name}`, {channel.message_encoding}."
        stream = rates.get(channel.topic)
        if stream is not None and stream.rate_hz:
            written = f"{stream.log_rate_hz:g} Hz" if stream.log_rate_hz else "every message that a step uses"
            yield f"Nominal rate {stream.rate_hz:g} Hz; stale after {stream.max_age_s:g} s; written: {written}."
        if channel.message_encoding == "json":
            schema = json.loads(channel.schema)
            yield f"\n{schema['description']}\n\n| field | type | |\n|---|---|---|"
            yield from _fields(schema["properties"], (channel.record,))
        if channel.topic == STREAMS["step"].topic:
            stateful = {name: kind.state for name, kind in KINDS.usable().items() if kind.state != StateFormat()}
            for kind, state in stateful.items():
                yield f"\n`{state.field}` in a task of the kind `{kind}`:\n\n| field | type | |\n|---|---|---|"
                schemas = step_form(state).step[state.field]["properties"]
                yield from _fields(schemas, (state.payload,), f"{state.field}.")


def _fields(properties: Mapping[str, Any], classes: tuple[type, ...], prefix: str = "") -> Iterator[str]:
    """Rows of the fields of a record.

    Args:
        properties: JSON schemas of the fields by name.
        classes: classes whose attributes are the fields; several where the record has one of them.
        prefix: names of the fields around them.
    """
    documented = {name: text for cls in classes for name, text in _attributes(cls).items()}
    hints = {name: hint for cls in classes for name, hint in get_type_hints(cls).items()}
    for name, schema in properties.items():
        kind = f"array of {schema['items']['type']}" if schema["type"] == "array" else schema["type"]
        own = schema.get("description", "") if schema["type"] != "number" else ""
        about = "; ".join(filter(None, (documented.get(name, "").rstrip("."), own)))
        yield f"| `{prefix}{name}` | {kind} | {about} |"
        hint = hints.get(name)
        inner = tuple(part for part in (hint, *get_args(hint)) if is_dataclass(part))
        yield from _fields(schema.get("properties", {}), inner, f"{prefix}{name}.")


def _attributes(cls: Any) -> dict[str, str]:
    """Descriptions of a class's attributes, from its docstring."""
    docstring = Docstring(markdown_of(cls.__doc__ or ""))
    sections = [
        section.value for section in docstring.parse("google") if section.kind is DocstringSectionKind.attributes
    ]
    texts: dict[str, str] = {}
    for item in (item for items in sections for item in items):
        # Griffe takes the second name of `x_m, y_m: position` for a type.
        names = (item.name.rstrip(","), *([str(item.annotation)] if item.name.endswith(",") else []))
        texts |= dict.fromkeys(names, " ".join(item.description.split()))
    return texts
