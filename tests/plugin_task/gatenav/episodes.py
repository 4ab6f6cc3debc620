"""Episodes of ``gatenav``: the file format ``gatenav-1``, and a generator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gatenav.kind import Gate
from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import Reader, write_json
from robot_runtime.datasets.sampling import Sampler
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task

HALF_WIDTH_M = 0.5


def _matches(document: Any) -> bool:
    return isinstance(document, dict) and document.get("format") == "gatenav-1"


def _reader(document: Any, path: Path) -> Reader:
    def read(index: int, record: Any) -> Episode:
        posts = tuple((float(x), float(y)) for x, y in record["posts"])
        return Episode(str(index), document["scene"], SE2(*record["start"]), (), details=Gate(posts))

    return read


def _save(path: Path, episodes: Sequence[Episode], task: Task) -> None:
    records = [
        {"start": [one.start.x_m, one.start.y_m, one.start.yaw_rad], "posts": Gate.of(one).posts} for one in episodes
    ]
    write_json(path, {"format": "gatenav-1", "scene": episodes[0].scene, "episodes": records})


FORMAT = EpisodeFormat("gatenav-1", "gatenav", _matches, _reader, _save, lambda _, task: task.kind == "gatenav")


def generate(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` episodes with a gate around a random place, and a start from which a way leads there."""
    sampler = Sampler(scene, task, seed)
    episodes: list[Episode] = []
    while len(episodes) < count:
        (x, y), start = sampler.place(), sampler.place()
        field = sampler.geodesic.field([(x, y)])
        if sampler.is_far_enough(field.at(*start)):
            episode = sampler.episode(len(episodes), start, field, ())
            posts = ((x, y - HALF_WIDTH_M), (x, y + HALF_WIDTH_M))
            episodes.append(replace(episode, details=Gate(posts)))
    return episodes
