"""Import of a folder with any number of houses, in processes, with a journal from which a repeated command resumes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from robot_runtime.common import config
from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import RuntimeFault, SceneError
from robot_runtime.parallel.map import Workers, map_in_order
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.recording.json_output import plain
from sim_bridge.scenes.importer import ImportOptions, import_scene
from sim_bridge.scenes.mjcf import is_mjcf
from sim_bridge.scenes.progress import Progress

JOURNAL = "import.jsonl"
TIME_LIMIT_S = 600.0
"""Time limit of a house."""

_WORLDS = (".world", ".sdf")
_CEILING = "_ceiling"


@dataclass(frozen=True)
class Imported(config.Strict):
    """Result of a house."""

    house: str
    scene: str
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""

    @property
    def cause(self) -> str:
        """The problem without what differs from house to house: paths, names in quotation marks, numbers."""
        plain_text = re.sub(r"\S*/\S*?(?=[:, ]|$)", "…", self.problem)
        return re.sub(r"\d[\d,.]*", "N", re.sub(r"'[^']*'", "'…'", plain_text)).removeprefix("…: ")


def find_houses(folder: Path) -> list[Path]:
    """The houses and worlds in a folder and its subfolders, without variants with a ceiling and without assets.

    Raises:
        SceneError: there is none.
    """
    candidates = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in (".xml", *_WORLDS)]
    houses = [
        path
        for path in candidates
        if not path.stem.endswith(_CEILING)
        and not any(parent.name.endswith("_assets") for parent in path.parents)
        and (path.suffix.lower() in _WORLDS or is_mjcf(path))
    ]
    if not houses:
        raise SceneError(f"{folder}: has no houses (.xml of MuJoCo, .world, .sdf)", "give the folder that holds them")
    return houses


def import_all(
    folder: Path, out: Path, options: ImportOptions, workers: Workers, report: Progress
) -> Iterator[Imported]:
    """Import every house of a folder; yield the results in the order of their names.

    What an earlier call has imported is not imported again, unless its file has changed; what failed is tried again.

    Each house's scene has the house's relative path in ``out``, which also holds the journal.

    Raises:
        SceneError: there are no houses.
        ConfigError: the journal has other options.
    """
    houses = find_houses(folder)
    out.mkdir(parents=True, exist_ok=True)
    with ResultJournal[Path, Imported](
        out / JOURNAL,
        {"options": repr(options)},
        file_key,
        lambda result: None if result.problem else plain(result),
        lambda document: config.parse(document, Imported, JOURNAL),
    ) as journal:
        results = map_in_order(
            partial(_import_each, folder, out, options),
            houses,
            workers,
            partial(_lost, folder, out),
            batch_size=1,
            limit_s=TIME_LIMIT_S,
            journal=journal,
        )
        for done, result in enumerate(results, 1):
            report("houses", done, len(houses))
            yield result


def _scene_folder(folder: Path, out: Path, house: Path) -> Path:
    return out / house.relative_to(folder).with_suffix("")


def _import_each(folder: Path, out: Path, options: ImportOptions, houses: Iterator[Path]) -> Iterator[Imported]:
    for house in houses:
        scene, timer = _scene_folder(folder, out, house), Stopwatch()
        try:
            notes = import_scene(house, scene, options)
        except RuntimeFault as error:
            yield Imported(str(house), str(scene), timer.elapsed_s(), (), error.message, error.remedy)
        else:
            yield Imported(str(house), str(scene), timer.elapsed_s(), tuple(notes))


def _lost(folder: Path, out: Path, house: Path, loss: WorkerLoss) -> Imported:
    problem = f"{house}: its process {loss}"
    return Imported(str(house), str(_scene_folder(folder, out, house)), problem=problem, remedy="import it alone")


def causes(results: Sequence[Imported]) -> list[tuple[str, int, Imported]]:
    """Causes of failures with their number and an example, the most frequent first."""
    found: dict[str, list[Imported]] = {}
    for result in results:
        if result.problem:
            found.setdefault(result.cause, []).append(result)
    return sorted(((cause, len(items), items[0]) for cause, items in found.items()), key=lambda row: -row[1])
