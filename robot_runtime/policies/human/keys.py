"""Keys of teleoperation: habitat's and ai2thor's together, and the bytes by which terminals report keys.

habitat-lab's example agent has w, a, d and f; forks add z and c to look. ai2thor's ``interact`` has arrows to move, j
and l or shift with an arrow to turn, i and k to look; plain arrows to the side, which move a simulated agent sideways,
turn this robot.
"""

from __future__ import annotations

import re

from robot_runtime.actions.discrete import Action

KEYS: dict[str, Action] = {
    "w": Action.MOVE_FORWARD,
    "a": Action.TURN_LEFT,
    "d": Action.TURN_RIGHT,
    "f": Action.STOP,
    "z": Action.LOOK_UP,
    "c": Action.LOOK_DOWN,
    "g": Action.GRAB_RELEASE,
    "up": Action.MOVE_FORWARD,
    "left": Action.TURN_LEFT,
    "right": Action.TURN_RIGHT,
    "shift+left": Action.TURN_LEFT,
    "shift+right": Action.TURN_RIGHT,
    "j": Action.TURN_LEFT,
    "l": Action.TURN_RIGHT,
    "i": Action.LOOK_UP,
    "k": Action.LOOK_DOWN,
}
"""Name of a key -> action. ``f`` ends the episode as an agent's ``stop`` does."""

HELP = "w/↑ forward · a/← d/→ turn · z/i up · c/k down · f done"

_SEQUENCE = re.compile(rb"\x1b(?:\[|O)(?:1;([0-9]))?([ABCD])|\x1b\[[0-9;]*[ -~]|\x1b|[ -~]")
_ARROWS = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}


def terminal_keys(data: bytes) -> list[str]:
    """Return the names of the keys that a terminal reports; unknown sequences are left out.

    Args:
        data: as read from the terminal; a sequence that is cut off is lost.
    """
    names = []
    for found in _SEQUENCE.finditer(data):
        modifier, arrow = found.groups()
        if arrow is not None:
            names.append(("shift+" if modifier == b"2" else "") + _ARROWS[arrow])
        elif len(found[0]) == 1 and found[0] != b"\x1b":
            names.append(found[0].decode().lower())
    return names
