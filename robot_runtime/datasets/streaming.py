"""Incremental reading of large files: a dataset's head first, then one episode at a time."""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import ijson

from robot_runtime.datasets.io import in_one_list, opened, reading_errors

_CONSTANT = re.compile(rb"NaN|Infinity")
_TOKEN = re.compile(rb'\\.|"|-?Infinity|NaN', re.DOTALL)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_MAYBE_CONSTANT = re.compile(rb"[-A-Za-z]{0,9}\Z")


class JsonStream:
    """The bytes of a JSON document in UTF-8, in which NaN, Infinity and -Infinity are texts of these names.

    So a value that is not finite is a wrong value of its field, and does not make the whole file unreadable. Only
    :meth:`read` is provided, as an incremental parser needs it; ``first`` is the first byte that is no space.

    Args:
        raw: bytes of the file, decompressed, at their start.

    Raises:
        ValueError: there are no bytes.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._rest = raw.read(4)
        if not self._rest:
            raise ValueError("it is empty")
        encoding = json.detect_encoding(self._rest)
        self._decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)()
        if self._decoder is not None:
            self._rest = self._decoder.decode(self._rest).encode()
        self.first = self._rest.lstrip()[:1]
        self._inside = self._escaped = self._ended = False

    def read(self, size: int = 1 << 16) -> bytes:
        """Some bytes, not more than a few above ``size``; none at the end. Raises ``UnicodeDecodeError``."""
        while size and not self._ended:  # a parser asks for 0 bytes to learn their type
            data = self._raw.read(size)
            self._ended = not data
            self._rest += data if self._decoder is None else self._decoder.decode(data, self._ended).encode()
            held = None if self._ended else _MAYBE_CONSTANT.search(self._rest)
            cut = len(self._rest) if held is None else held.start()
            piece, self._rest = self._rest[:cut], self._rest[cut:]
            if piece:
                return self._quoted(piece)
        return b""

    def _quoted(self, piece: bytes) -> bytes:
        """The next piece with its constants as texts; texts that contain their names stay as they are."""
        begins = 1 if self._escaped else 0
        bare = _ESCAPE.sub(b"", piece[begins:]) if b"\\" in piece else piece[begins:]
        if _CONSTANT.search(piece):
            piece = piece[:begins] + _TOKEN.sub(self._token, piece[begins:])
        elif bare.count(b'"') % 2:
            self._inside = not self._inside
        self._escaped = bare.endswith(b"\\")
        return piece

    def _token(self, match: re.Match[bytes]) -> bytes:
        if match[0] == b'"':
            self._inside = not self._inside
        elif not self._inside and match[0][:1] != b"\\":
            return b'"' + match[0] + b'"'
        return match[0]


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
