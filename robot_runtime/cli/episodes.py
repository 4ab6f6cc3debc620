"""``robot-runtime episodes``: generate, inspect and validate episode files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from robot_runtime.cli_options import completion, options
from robot_runtime.common.console import console, say
from robot_runtime.errors import EpisodeError

if TYPE_CHECKING:
    from robot_runtime.datasets.validate import Report


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    groups["episodes"].command("generate")(generate)
    groups["episodes"].command("info")(info)
    groups["episodes"].command("validate")(validate)


def generate(
    out: Annotated[Path, typer.Option(help="File to write, ending in .json.gz or .yaml.")],
    scene: Annotated[
        str, typer.Option(help="Scene folder, or the name of a bundled scene.", autocompletion=completion.scenes)
    ] = "apartment",
    task: Annotated[
        str, typer.Option(help="Task preset or YAML file.", autocompletion=completion.tasks)
    ] = "pointnav_gps_compass",
    count: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same episodes.")] = 0,
) -> None:
    """Generate episodes for a scene in Habitat's own format (PointNav-v1 or ObjectNav-v1), or as YAML.

    Episodes with instructions are not generated; those with questions are, by `episodes questions`.

    Examples:
        robot-runtime episodes generate --out val.json.gz --count 50
        robot-runtime episodes generate --out objects.json.gz --scene scenes/house --task objectnav_habitat2020
    """
    from robot_runtime.datasets.files import save_episodes
    from robot_runtime.datasets.formats import generate_episodes
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    chosen_task = load_task(task)
    episodes = generate_episodes(load_scene(find_scene(scene)), chosen_task, count, seed)
    save_episodes(out, episodes, chosen_task)
    say(f"{len(episodes)} {chosen_task.kind} episodes: {out}")


def info(
    path: Annotated[Path, typer.Argument(help="Episode file or folder, of any format that the runtime reads.")],
    json: options.Json = None,
) -> None:
    """Say what is in an episode file.

    Example:
        robot-runtime episodes info FloorPlan_Val1_1.json.gz
    """
    from robot_runtime.common.tables import facts_table
    from robot_runtime.datasets.files import iter_episodes
    from robot_runtime.datasets.validate import straight_m
    from robot_runtime.recording.json_output import write_json

    def spread(values: list[float]) -> str:
        ordered = sorted(values)
        return " .. ".join(f"{ordered[round(share * (len(ordered) - 1))]:.2f}" for share in (0, 0.25, 0.5, 0.75, 1))

    lengths: list[float] = []
    ratios: list[float] = []
    ids, scenes, categories = Counter[str](), Counter[str](), Counter[str]()
    for episode in iter_episodes(path):
        ids[episode.id] += 1
        scenes[episode.scene] += 1
        if episode.category is not None:
            categories[episode.category] += 1
        if episode.shortest_path_m is not None:
            lengths.append(episode.shortest_path_m)
            apart_m = straight_m(episode)
            ratios += [episode.shortest_path_m / apart_m] if apart_m else []

    facts: dict[str, object] = {
        "episodes": f"{ids.total()}, {ids.total() - len(ids)} with an id that another has too",
        "scenes": dict(sorted(scenes.items())),
    }
    if categories:
        facts["categories"] = dict(sorted(categories.items()))
    if lengths:
        facts["shortest path"] = f"{spread(lengths)} m (least, quartiles, greatest)"
    if ratios:
        facts["shortest path / straight line"] = spread(ratios)
    console.print(facts_table(facts))
    if json is not None:
        numbers = {
            "episodes": ids.total(),
            "repeated_ids": ids.total() - len(ids),
            "shortest_paths_m": sorted(lengths),
            "ratios": sorted(ratios),
        }
        write_json(json, {**facts, **numbers})


def validate(
    path: Annotated[Path, typer.Argument(help="Episode file or folder, of any format that the runtime reads.")],
    scene: Annotated[str | None, typer.Option(help="Scene folder or bundled scene: check places on its map.")] = None,
    task: Annotated[str | None, typer.Option(help="Task preset or YAML file: check categories, robot size.")] = None,
    min_ratio: Annotated[float | None, typer.Option(min=1, help="Geodesic over Euclidean, ObjectNav: 1.05.")] = None,
    examples: Annotated[int, typer.Option(min=1, help="How many to show of each finding.")] = 3,
    json: options.Json = None,
    strict: Annotated[bool, typer.Option(help="Exit with 5 if there is a problem.")] = False,
) -> None:
    """Validate an episode file: zero length, repeated ids, goals off the map, and more.

    Examples:
        robot-runtime episodes validate FloorPlan_Val1_1.json.gz --task objectnav_robothor2021
        robot-runtime episodes validate val.json.gz --scene apartment --strict
    """
    from robot_runtime.datasets.files import companion_problems, iter_readable
    from robot_runtime.datasets.validate import MIN_RATIO
    from robot_runtime.datasets.validate import validate as check
    from robot_runtime.recording.json_output import write_json
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    report = check(
        iter_readable(path),
        None if task is None else load_task(task),
        None if scene is None else load_scene(find_scene(scene)),
        MIN_RATIO if min_ratio is None else min_ratio,
        examples,
        lambda ids: companion_problems(path, ids),
    )
    is_odd = bool(report.findings or report.companions)
    console.print(f"{report.episodes} episodes, {'problems:' if is_odd else 'no problems found'}")
    for sentence in report.companions:
        console.print(f"files next to it: {sentence}", highlight=False, markup=False, soft_wrap=True)
    if report.findings:
        console.print(_findings(report))
    write_json(json, report.to_document())
    if strict and is_odd:
        raise typer.Exit(EpisodeError.exit_code)


def _findings(report: Report) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("finding", ratio=2)
    table.add_column("episodes", justify="right")
    table.add_column("first", ratio=3)
    for item in report.findings:
        lines = [f"{example.index}: {example.id or '?'}: {example.detail}" for example in item.examples]
        table.add_row(f"[bold]{item.check}[/]\n[dim]{item.meaning}[/]", str(item.count), escape("\n".join(lines)))
    return table
