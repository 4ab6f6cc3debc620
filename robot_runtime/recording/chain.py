"""Chain of a log's records, by which a score notices that one was altered, left out, repeated or moved.

Header, steps and end have the field ``chain``, the last of their JSON: SHA-256 over the chain of the record before, the
record without that field, and what belongs to it in other messages (the header's attachments, a step's ``/objects``).
Nothing of it is secret: it finds accidents and edits, not a forger who computes it again.
"""

import hashlib
import re
from collections.abc import Sequence

_FIELD = re.compile(rb',"chain":"([0-9a-f]{64})"\}')
_FIELD_BYTES = len(',"chain":""}') + 64


class Chain:
    """The chain up to one record of a log.

    Attributes:
        digest: digest of the record, as a hexadecimal number; empty before the header.
    """

    def __init__(self) -> None:
        self.digest = ""

    def append(self, record: bytes, others: Sequence[bytes] = ()) -> bytes:
        """Return the next record, a JSON object that is not empty, with its field ``chain``.

        Args:
            record: JSON of the record.
            others: data of other messages that belong to it.
        """
        self.digest = self._next(record, others)
        return record[:-1] + f',"chain":"{self.digest}"}}'.encode()

    def follows(self, record: bytes, others: Sequence[bytes] = ()) -> bool:
        """Whether a record with its field ``chain`` is the next one; if so, the chain is now up to it."""
        stated = stated_digest(record)
        if not stated or stated != self._next(record[:-_FIELD_BYTES] + b"}", others):
            return False
        self.digest = stated
        return True

    def _next(self, record: bytes, others: Sequence[bytes]) -> str:
        parts = [self.digest.encode()]
        for part in (record, *others):
            parts += (len(part).to_bytes(8, "little"), part)
        return hashlib.sha256(b"".join(parts)).hexdigest()


def stated_digest(record: bytes) -> str:
    """The field ``chain`` of a record; empty in older logs."""
    found = _FIELD.fullmatch(record[-_FIELD_BYTES:])
    return found[1].decode() if found else ""
