"""Keys of teleoperation: habitat's and ai2thor's together.

habitat-lab's example agent has w, a, d and f; forks add z and c to look. ai2thor's ``interact`` has arrows to move, j
and l or shift with an arrow to turn, i and k to look; plain arrows to the side, which move a simulated agent sideways,
turn this robot.
"""

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
