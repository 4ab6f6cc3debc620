"""Verification of a ledger's times: clocks that were set, and computers that were suspended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

from robot_runtime.campaign.ledger import CLOCK_TOLERANCE_S, Entry

What = Literal["changed", "left out", "re-run", "re-judged", "order", "time", "answer", "identity"]
"""Kind of a finding."""

DRIFT_S = 5.0
"""Largest difference between the computer's clock and its time since the start, within one start of the computer."""


def check_times(
    entries: Sequence[Entry], find: Callable[[What, str, str], None], note: Callable[[str], None]
) -> dict[int, float]:
    """Check the clock; returns the seconds by which it was set before each line, where it was.

    A clock that was set is noted; it is a finding only where a session or a run began before it was right again.
    """
    steps_s: dict[int, float] = {}
    latest = entries[0].at
    behind = 0.0
    behind_since: Entry | None = None
    for before, after in pairwise(entries):
        where = f"line {after.n + 1}"
        wall_s = (after.at - before.at).total_seconds()
        up_s = after["up_s"] - before["up_s"] if after["boot"] == before["boot"] else None
        if up_s is not None and up_s < 0:
            find("time", where, f"the computer's time since its start ran back by {-up_s:.0f} s")
        elif up_s is not None and abs(wall_s - up_s) > DRIFT_S:
            steps_s[after.n] = abs(wall_s - up_s)
            note(f"{where}: the clock was set by {wall_s - up_s:+.0f} s, or the computer was suspended")
        elif wall_s < -CLOCK_TOLERANCE_S:
            steps_s[after.n] = -wall_s
            note(f"{where}: the clock was set back by {-wall_s:.0f} s")
        latest, behind = max(latest, after.at), max(0.0, (latest - after.at).total_seconds())
        if behind <= CLOCK_TOLERANCE_S:
            behind_since = None
        elif behind_since is None:
            behind_since = after
        if behind_since is not None and after.kind in ("begun", "session"):
            what = "run" if after.kind == "begun" else after.kind
            find("time", where, f"a {what} began while the clock was {behind:.0f} s behind the lines before")
    if behind_since is not None and behind_since.kind != "paused":
        note(f"line {behind_since.n + 1}: the clock was set back by {behind:.0f} s, and stayed so; no run began since")
    return steps_s
