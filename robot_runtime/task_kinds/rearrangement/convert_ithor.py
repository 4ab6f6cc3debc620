"""Conversion of iTHOR's rearrangement episodes from pickle to JSON."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from robot_runtime.datasets import pickle_sandbox
from robot_runtime.datasets.io import records_of, write_json
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.rearrangement import format_ithor as ithor_rearrangement

_WALL_S = 2.0 * pickle_sandbox.MAX_CPU_S


def read_pickle(path: Path) -> Any:
    """The plain data of a pickle, gzipped or not, unpickled in the sandbox. Raises ``EpisodeError``."""
    try:
        with path.open("rb") as source:
            # -I -S: no environment, no site-packages; the script gets the standard library and nothing else.
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(Path(pickle_sandbox.__file__))],
                stdin=source,
                capture_output=True,
                timeout=_WALL_S,
                check=False,
                env={},
                cwd="/",
            )
    except FileNotFoundError:
        raise EpisodeError(f"{path}: no such file", "check the path") from None
    except OSError as error:
        raise EpisodeError(f"{path}: cannot be read: {error}", "check that it is a readable file") from error
    except subprocess.TimeoutExpired:
        raise EpisodeError(f"{path}: takes longer than {_WALL_S:g} s to read", "download the file again") from None
    if done.returncode != 0:
        raise EpisodeError(
            f"{path}: {_reason(done)}", "download the file again from its publisher; do not open it by other means"
        )
    return json.loads(done.stdout)


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    output = " ".join(done.stderr.decode(errors="replace").split())
    if done.returncode == pickle_sandbox.REFUSED:
        return output
    if done.returncode < 0:
        return f"the sandbox ended with {signal.Signals(-done.returncode).name}: the file exceeds its limits"
    return f"the sandbox failed with status {done.returncode}: {output[-300:]}"


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
