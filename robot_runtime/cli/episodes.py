"""``robot-runtime episodes``: generate and inspect episode files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    groups["episodes"].command("generate")(generate)
    groups["episodes"].command("info")(info)


def generate(
    out: Annotated[Path, typer.Argument(help="File to write, ending in .json.gz.")],
    scene: Annotated[str, typer.Option(help="Scene folder, or the name of a bundled scene.")] = "apartment",
    task: Annotated[str, typer.Option(help="Task preset or YAML file.")] = "pointnav_gps_compass",
    count: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    seed: Annotated[int, typer.Option(help="Same seed, same episodes.")] = 0,
) -> None:
    """Generate episodes for a scene in Habitat's own format (PointNav-v1 or ObjectNav-v1).

    Examples:

        robot-runtime episodes generate val.json.gz --count 50

        robot-runtime episodes generate objects.json.gz --scene scenes/house --task objectnav_habitat2020
    """
    from robot_runtime.cli.console import console
    from robot_runtime.episodes import save_episodes
    from robot_runtime.episodes.generate import generate_episodes
    from robot_runtime.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    chosen_task = load_task(task)
    episodes = generate_episodes(load_scene(find_scene(scene)), chosen_task, count, seed)
    save_episodes(out, episodes, chosen_task)
    console.print(f"{len(episodes)} {chosen_task.kind} episodes: {out}", soft_wrap=True)


def info(
    path: Annotated[Path, typer.Argument(help="Episode file: Habitat PointNav or ObjectNav, or RoboTHOR.")],
) -> None:
    """Say what is in an episode file.

    Example:

        robot-runtime episodes info FloorPlan_Val1_1.json.gz
    """
    from collections import Counter

    from rich.table import Table

    from robot_runtime.cli.console import console
    from robot_runtime.episodes import load_episodes

    episodes = load_episodes(path)
    lengths = sorted(e.shortest_path_m for e in episodes if e.shortest_path_m is not None)
    scenes = Counter(episode.scene for episode in episodes)
    categories = Counter(episode.category for episode in episodes if episode.category is not None)
    repeated = len(episodes) - len({episode.id for episode in episodes})

    table = Table(show_header=False, box=None)
    table.add_row("episodes", f"{len(episodes)}, {repeated} with an id that another has too")
    table.add_row("scenes", ", ".join(f"{name} {count}" for name, count in sorted(scenes.items())))
    if categories:
        table.add_row("categories", ", ".join(f"{name} {count}" for name, count in sorted(categories.items())))
    if lengths:
        middle = lengths[len(lengths) // 2]
        table.add_row("shortest path", f"{lengths[0]:.2f} .. {middle:.2f} (median) .. {lengths[-1]:.2f} m")
    console.print(table)
