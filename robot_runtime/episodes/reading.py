"""Reading and checking episode files: whatever is wrong with one becomes an ``EpisodeError`` that says where."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from robot_runtime.errors import EpisodeError

T = TypeVar("T")

_GZIP_MAGIC = b"\x1f\x8b"

Finite = Annotated[float, Field(allow_inf_nan=False)]
Vector3 = Annotated[list[Finite], Field(min_length=3, max_length=3)]
Quaternion = Annotated[list[Finite], Field(min_length=4, max_length=4)]


def read_json(path: Path) -> Any:
    """The JSON document in a file, gzipped or plain (told apart by content).

    Raises:
        EpisodeError: missing, unreadable, truncated or damaged gzip, or not JSON.
    """
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
        return json.loads(data)
    except FileNotFoundError:
        raise EpisodeError(
            f"{path}: no such file", "check the path, or make one with `robot-runtime episodes generate`"
        ) from None
    except EOFError:
        raise EpisodeError(f"{path}: is truncated: the gzip stream ends too early", "fetch the file again") from None
    except (OSError, zlib.error) as error:
        raise EpisodeError(f"{path}: cannot be read: {error}", "fetch the file again") from error
    except (ValueError, RecursionError) as error:
        raise EpisodeError(f"{path}: is not JSON: {error}", "fetch the file again, or mend it there") from error


def write_json(path: Path, document: Any) -> None:
    """Write a document as compact JSON, gzipped if the name ends in ``.gz``. The same document gives the same bytes.

    Raises:
        EpisodeError: the file cannot be written.
    """
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    if path.name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise EpisodeError(f"{path}: cannot be written: {error}", "choose a place with room and permission") from error


def checked(document: Any, schema: TypeAdapter[T], path: Path, id_field: str = "episode_id") -> T:
    """The document, checked against a schema.

    Args:
        id_field: the field that names an episode, to be named in the error.

    Raises:
        EpisodeError: names file, episode (index and id), field, what is wrong and what was found.
    """
    try:
        return schema.validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where, place = _where(document, first["loc"], id_field)
        found = first.get("input")
        shown = "" if isinstance(found, (dict, list)) else f" (found {found!r:.60})"
        raise EpisodeError(
            f"{path}: {where}field {place!r}: {first['msg']}{shown}",
            f"correct {place!r} there, or fetch the file again",
        ) from error


def _where(document: Any, loc: tuple[int | str, ...], id_field: str) -> tuple[str, str]:
    """``("episode 12 (id 'x'): ", "goals.0.position")`` for a location in a document."""
    steps = list(loc)
    episodes = document
    if steps[:1] == ["episodes"] and isinstance(document, Mapping):
        episodes, steps = document["episodes"], steps[1:]
    if not (steps and isinstance(steps[0], int) and isinstance(episodes, list)):
        return "", ".".join(map(str, loc)) or "document"
    index, field = steps[0], ".".join(map(str, steps[1:])) or "episode"
    episode = episodes[index]
    name = f" (id {episode[id_field]!r:.60})" if isinstance(episode, Mapping) and id_field in episode else ""
    return f"episode {index}{name}: ", field
