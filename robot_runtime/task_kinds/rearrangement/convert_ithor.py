"""Conversion of iTHOR's rearrangement episodes from pickle to JSON."""

from pathlib import Path
from typing import Any

from robot_runtime.datasets.io import records_of, write_json
from robot_runtime.datasets.pickle_reading import read_pickle
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.rearrangement import format_ithor as ithor_rearrangement


def convert(source: Path, out: Path, stage: str | None = None) -> int:
    """Convert ``{train,val,test}.pkl.gz`` of ai2thor-rearrangement for ``ithor_rearrangement``.

    Args:
        source: the pickle, gzipped or not.
        out: file to write, ending in ``.json`` or ``.json.gz``.
        stage: the split, for the episodes' ``unique_id``; None for the source's name up to the first dot.

    Returns:
        Number of episodes written. Each was read once: a file that converts also loads.

    Raises:
        EpisodeError: the source cannot be read, is rejected by the sandbox, or does not contain such episodes; or
            ``out`` cannot be written.
    """
    if not out.name.endswith((".json", ".json.gz")):
        raise EpisodeError(f"{out}: must be a JSON file", "use a name that ends in .json.gz")
    scenes = read_pickle(source)
    if not (isinstance(scenes, dict) and all(_is_list_of_records(records) for records in scenes.values())):
        raise EpisodeError(
            f"{source}: does not contain {{scene: [episode, ...]}}",
            "use a split of ai2thor-rearrangement's data folder",
        )
    document = ithor_rearrangement.from_pickled(scenes, stage or source.name.split(".")[0])
    read = ithor_rearrangement.reader(document, source)
    for index, record in enumerate(records_of(document)):
        read(index, record)
    write_json(out, document)
    return len(document["episodes"])


def _is_list_of_records(records: Any) -> bool:
    return isinstance(records, list) and all(isinstance(record, dict) for record in records)
