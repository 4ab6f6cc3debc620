"""Finding the way off an obstacle that only says "blocked"."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.policies.planning.contact_memory import ContactMemory

ANGLES = np.radians(np.arange(0.0, 360.0, 30.0))


def blocked_at(memory: ContactMemory, pose: SE2, travelled_m: float = 0.0) -> bool:
    """A forward move that ends at ``pose``."""
    memory.observe(pose @ SE2(-travelled_m))
    memory.acted(Action.MOVE_FORWARD)
    return memory.observe(pose)


def test_a_full_move_is_no_contact_and_a_short_one_is() -> None:
    memory = ContactMemory(0.25)
    assert not blocked_at(memory, SE2(1, 0), travelled_m=0.249)
    assert memory.allowed(ANGLES) is None
    assert blocked_at(memory, SE2(1, 0), travelled_m=0.1)
    assert memory.allowed(ANGLES) is not None


def test_turns_and_looks_are_no_forward_moves() -> None:
    memory = ContactMemory(0.25)
    for action in (Action.TURN_LEFT, Action.TURN_RIGHT, Action.LOOK_DOWN):
        memory.observe(SE2())
        memory.acted(action)
        assert not memory.observe(SE2(0, 0, 0.5))


def test_the_refused_heading_is_not_tried_again_until_the_robot_has_moved() -> None:
    memory = ContactMemory(0.25)
    blocked_at(memory, SE2())
    allowed = memory.allowed(ANGLES)
    assert allowed is not None
    assert not allowed[0]
    memory.observe(SE2(0, 0, math.pi))
    memory.acted(Action.MOVE_FORWARD)
    assert not memory.observe(SE2(-0.25, 0, math.pi))
    assert memory.allowed(ANGLES) is None


@given(st.floats(-89.0, 89.0), st.floats(-180.0, 180.0), st.integers(0, 2**32 - 1))
def test_whatever_is_touched_some_allowed_heading_gets_away_within_the_bumpers_reach(
    bearing_deg: float, yaw_deg: float, seed: int
) -> None:
    """Trying allowed headings, in any order, takes at most as many tries as there are headings."""
    touching = math.radians(yaw_deg + bearing_deg)
    angles = ANGLES + math.radians(yaw_deg)
    memory, random = ContactMemory(0.25), np.random.default_rng(seed)
    blocked_at(memory, SE2(0, 0, angles[0]))
    for _ in range(len(angles)):
        allowed = memory.allowed(angles)
        assert allowed is not None
        heading = float(random.choice(angles[allowed]))
        if abs(wrap_angle(heading - touching)) > math.pi / 2:
            return
        blocked_at(memory, SE2(0, 0, heading))
    raise AssertionError("never got away")


def test_two_obstacles_leave_the_headings_not_refused_yet() -> None:
    memory = ContactMemory(0.25)
    for heading in (0, 3, 6):
        blocked_at(memory, SE2(0, 0, float(ANGLES[heading])))
    allowed = memory.allowed(ANGLES)
    assert allowed is not None
    assert allowed.sum() > 0
    assert not allowed[[0, 3, 6]].any()
