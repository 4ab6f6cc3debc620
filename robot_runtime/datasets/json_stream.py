"""JSON as programs write it: in any encoding of Unicode, and with NaN and Infinity, which JSON does not have."""

from __future__ import annotations

import codecs
import json
import re
from typing import BinaryIO

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
