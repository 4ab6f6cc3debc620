"""Names of the keys that a terminal reports, from a stream of bytes that may be divided anywhere."""

import re

PASTING_ON, PASTING_OFF = b"\x1b[?2004h", b"\x1b[?2004l"
"""Sequences that make a terminal mark pasted text."""

PASTED_KEYS = 3
"""Typed keys in one read, not all of them equal, from which they count as pasted by a terminal without such marks."""

WAIT_S = 0.5
"""Time in which the rest of a divided sequence must follow."""

_SEQUENCE = re.compile(
    rb"\x1b\[200~(?P<pasted>.*?)\x1b\[201~"
    rb"|\x1b(?:\[|O)(?:1;(?P<modifier>[0-9]))?(?P<arrow>[ABCD])"
    rb"|\x1b\[\[[A-E]|\x1b\[M.{3}|\x1b\[(?![\[M])[0-?]*[ -/]*[@-~]|\x1bO[ -~]"
    rb"|\x1b(?![\[O])[ -~]|(?P<typed>[ -~])",
    re.DOTALL,
)
_CUT_OFF = re.compile(rb"\x1b(?:\[(?:200~(?:(?!\x1b\[201~).)*|\[|M.{0,2}|[0-?]*[ -/]*)?|O(?:1;?[0-9]?)?)?\Z", re.DOTALL)
_ARROWS = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}


class KeyStream:
    """Parser of a terminal's bytes. Pasted text is no key, and unknown sequences are left out."""

    def __init__(self) -> None:
        self._rest = b""
        self._since_s = 0.0

    def feed(self, data: bytes, now_s: float) -> list[str]:
        """Return the names of the keys that these bytes complete, in order.

        Args:
            data: bytes of one read.
            now_s: time of the read; the beginning of a sequence is dropped after ``WAIT_S``, except of pasted text.
        """
        rest = self._rest
        if now_s - self._since_s > WAIT_S and not rest.startswith(b"\x1b[200~"):
            rest = b""
        data = rest + data
        cut_off = _CUT_OFF.search(data)
        self._rest, self._since_s = (cut_off[0], now_s) if cut_off else (b"", now_s)
        found = list(_SEQUENCE.finditer(data[: len(data) - len(self._rest)]))
        typed = [match["typed"] for match in found if match["typed"]]
        is_pasted = len(typed) >= PASTED_KEYS and len(set(typed)) > 1
        names = []
        for match in found:
            if match["arrow"]:
                names.append(("shift+" if match["modifier"] == b"2" else "") + _ARROWS[match["arrow"]])
            elif match["typed"] and not is_pasted:
                names.append(match["typed"].decode().lower())
        return names
