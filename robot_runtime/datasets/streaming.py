"""Incremental reading of large files: a dataset's head first, then one episode at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ijson

from robot_runtime.datasets.io import in_one_list, opened, reading_errors
from robot_runtime.datasets.json_stream import JsonStream

_ENDS = frozenset({"end_map", "end_array"})
_STARTS = frozenset({"start_map", "start_array"})


def outline(path: Path) -> Any:
    """The JSON document in a file with only its first episode, for the format and the data that all episodes share.

    Episodes are the items of a document that is a list, or of its ``episodes``; the documents of a file of JSON lines,
    of which the outline is a list with the first; and the items of a document of one list for each scene.

    Raises:
        EpisodeError: as :func:`robot_runtime.datasets.io.read_json`; for a list, the rest is not read.
    """
    with _events(path) as events:
        builder = ijson.ObjectBuilder()
        depth, key, episodes_depth, begun, begun_documents = 0, "", -1, 0, False
        for event, value in events:
            if depth == 0 and event == "start_map" and begun_documents:
                return [builder.value]
            begun_documents = True
            if event in _ENDS:
                depth -= 1
            inside = 0 <= episodes_depth <= depth
            if inside and depth == episodes_depth and event not in _ENDS:
                begun += 1
            if not inside or begun <= 1:
                builder.event(event, value)
            elif episodes_depth == 1:
                return builder.value
            if depth < episodes_depth:
                episodes_depth = -1
            if event == "map_key" and depth == 1:
                key = value
            if event in _STARTS:
                depth += 1
                if event == "start_array" and (depth == 1 or (depth == 2 and key == "episodes")):
                    episodes_depth = depth
        return in_one_list(builder.value)


def records(path: Path, in_list: bool) -> Iterator[Any]:
    """The episodes of a file, one at a time.

    Args:
        path: path of the file.
        in_list: whether the outline is a list, rather than an object with ``episodes``.

    Raises:
        EpisodeError: as :func:`robot_runtime.datasets.io.read_json`, at the error.
    """
    with reading_errors(path), opened(path) as raw:
        stream = JsonStream(raw)
        if in_list and stream.first == b"{":  # JSON lines, or lists by scene
            for document in ijson.items(stream, "", use_float=True, multiple_values=True):
                spread = in_one_list(document)
                yield from spread if isinstance(spread, list) else [spread]
            return
        yield from ijson.items(stream, "item" if in_list else "episodes.item", use_float=True)


@contextmanager
def _events(path: Path) -> Iterator[Iterator[tuple[str, Any]]]:
    with reading_errors(path), opened(path) as stream:
        yield ijson.basic_parse(JsonStream(stream), use_float=True, multiple_values=True)
