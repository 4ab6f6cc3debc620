"""Reading and validation of episode files; all errors become an ``EpisodeError`` that names the place."""

import functools
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar, cast

import ijson
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from robot_runtime.common import bounded
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode

T = TypeVar("T")

Reader = Callable[[int, Any], Episode]
"""Converts the record at an index of a dataset to an episode, or raises ``EpisodeError``."""

GZIP_MAGIC = b"\x1f\x8b"

Finite = Annotated[float, Field(allow_inf_nan=False)]
Vector3 = Annotated[list[Finite], Field(min_length=3, max_length=3)]
Quaternion = Annotated[list[Finite], Field(min_length=4, max_length=4)]


class OpenDict(TypedDict):
    """Base of the records in files: strict types; unknown fields are allowed and preserved."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]


def _text_or_integer(value: Any) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("an id is a text or an integer")
    return value


Id = Annotated[Any, AfterValidator(_text_or_integer)]
"""Id of an episode in a file; :class:`Episode` has it as a text."""


def read_json(path: Path) -> Any:
    """The JSON document in a file, gzipped or plain (detected by content); for JSON lines, the list of all documents.

    Raises:
        EpisodeError: missing, unreadable, truncated or damaged gzip, a hundred times its size, or not JSON.
    """
    with reading_errors(path), opened(path) as stream:
        data = stream.read()
        if not data:
            raise ValueError("it is empty")
        # What JSON does not have becomes a text, which no field of a number takes.
        load = functools.partial(json.loads, parse_constant=str)
        try:
            return load(data)
        except json.JSONDecodeError as error:
            if not error.msg.startswith("Extra data"):
                raise
            return [load(line) for line in data.splitlines() if line.strip()]


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, decompressed if necessary."""
    with path.open("rb") as raw:
        zipped = raw.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        raw.seek(0)
        yield cast(BinaryIO, bounded.GzipReader(raw, path.stat().st_size)) if zipped else raw


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Convert the errors of reading a JSON file into ``EpisodeError``."""
    try:
        yield
    except FileNotFoundError:
        raise EpisodeError(
            f"{path}: no such file", "check the path, or make one with `robot-runtime episodes generate`"
        ) from None
    except EOFError:
        raise EpisodeError(f"{path}: is truncated: the gzip stream ends too early", "download the file again") from None
    except (OSError, zlib.error, bounded.TooLarge) as error:
        raise EpisodeError(f"{path}: cannot be read: {error}", "download the file again") from error
    except (ijson.JSONError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        if isinstance(error, UnicodeDecodeError) or "UTF8" in problem:
            raise EpisodeError(
                f"{path}: is not text in UTF-8: {problem:.200}", "convert it, as by `iconv -f LATIN1 -t UTF-8`"
            ) from error
        raise EpisodeError(f"{path}: is not JSON: {problem:.200}", "download the file again, or correct it") from error


def write_json(path: Path, document: Any) -> None:
    """Write a document as compact JSON, gzipped if the name ends in ``.gz``. Equal documents give equal bytes.

    Raises:
        RecordingError: the file cannot be written.
    """
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    if path.name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    from robot_runtime.common.creating import creating

    with creating(path, "choose a place with room and permission") as draft:
        draft.write_bytes(data)


def checked(value: Any, schema: TypeAdapter[T], path: Path, where: str = "") -> T:
    """Validate a value of a file.

    Args:
        value: value to validate.
        schema: schema of the value.
        path: path of the file.
        where: position in the file, as by :func:`episode_at`; empty for the whole document.

    Raises:
        EpisodeError: names file, ``where``, field, the problem and the value.
    """
    try:
        return schema.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or ("episode" if where else "document")
        found = first.get("input")
        shown = "" if isinstance(found, (dict, list)) else f" (found {found!r:.60})"
        raise EpisodeError(
            f"{path}: {where}field {place!r:.200}: {first['msg']}{shown}",
            f"correct {place!r:.200} there, or download the file again",
        ) from error


def episode_at(index: int, record: Any, id_field: str = "episode_id") -> str:
    """``"episode 12 (id 'x'): "``, for messages."""
    name = f" (id {record[id_field]!r:.60})" if isinstance(record, Mapping) and id_field in record else ""
    return f"episode {index}{name}: "


def parse(reader: Callable[[Any, Path], Reader], document: Any, path: Path) -> list[Episode]:
    """All episodes of a document read from ``path``, by a format's ``reader``. Raises ``EpisodeError``."""
    read = reader(document, path)
    return [read(index, record) for index, record in enumerate(records_of(document))]


def in_one_list(document: Any) -> Any:
    """A document of one list of records for each scene as a list of all records; any other document as it is."""
    if isinstance(document, dict) and any(document.values()) and all(map(_is_of_records, document.values())):
        return [record for records in document.values() for record in records]
    return document


def _is_of_records(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and "scene" in item for item in value)


def records_of(document: Any) -> list[Any]:
    """The episodes of a document: the document itself if it is a list, else its ``episodes``."""
    records: list[Any] = document if isinstance(document, list) else document["episodes"]
    return records


class Position(OpenDict):
    """A point in THOR's frame, meters."""

    x: Finite
    y: Finite
    z: Finite
