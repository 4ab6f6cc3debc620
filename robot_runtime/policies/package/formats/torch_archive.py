"""Check of torch's archives, zips of tensors, graphs, programs and pickles, before torch loads them.

The risks of hostile files follow from the source of torch 2.13.0: ``torch.export.load`` unpickles weights marked
``use_pickle``, and sample inputs without restriction if the restricted unpickler fails; it resolves a node's target as
a path of attributes from ``torch``, so that any reachable function can be called; it evaluates sizes as Python.
TorchScript's archive is read by an unpickler in C++ that makes tensors only, but its programs may write and map files.
Therefore each format lists the members that its archive may hold, and torch is given a new archive of these alone, so
that two zip readers cannot disagree about the content.
"""

import io
import zipfile
import zlib
from collections.abc import Callable

from robot_runtime.common import bounded
from robot_runtime.errors import PackageError
from robot_runtime.policies.package.files import MAX_MODEL_BYTES

MAX_MEMBERS = 10_000


def checked_archive(data: bytes, name: str, accept: Callable[[str, Callable[[], bytes]], bool]) -> io.BytesIO:
    """A new, uncompressed archive of the members that ``accept`` allows.

    Args:
        data: the archive.
        name: name of the file, for messages.
        accept: called with a member's path below the archive's root and a function that reads it; returns whether it
            belongs into the new archive, or raises ``ValueError`` for an archive that must not be loaded.

    Raises:
        PackageError: the archive is damaged or must not be loaded.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            bounded.check_members(archive, MAX_MEMBERS, MAX_MODEL_BYTES)
            members = archive.infolist()
            _check_names(members)
            target = io.BytesIO()
            with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
                for member in members:
                    path = member.filename.partition("/")[2]
                    if accept(path, lambda member=member: archive.read(member)):  # type: ignore[misc]
                        copy.writestr(f"archive/{path}", archive.read(member))
    except ValueError as error:
        raise PackageError(f"{name}: {error}", "convert the policy to ONNX, or export it again") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise PackageError(f"{name}: not a complete torch archive: {error}", "copy the package again") from error
    target.seek(0)
    return target


def _check_names(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError("has two members of the same name")
    if len({name.partition("/")[0] for name in names}) != 1:
        raise ValueError("is not a torch archive: its members have no common folder")
    for name in names:
        if "\\" in name or ".." in name.split("/") or "" in name.split("/"):
            raise ValueError(f"has a member {name!r}")
