"""Refusal of looks that would end beyond a task's limits, as in AI2-THOR; none is shortened."""

from __future__ import annotations

import math

from robot_runtime.hal import HeadLimits


def look_refusal(
    requested_rad: float, step_rad: float, limits_rad: tuple[float, float] | None, head: HeadLimits, slack_rad: float
) -> str:
    """Reason to leave the head where it is; empty if the look is to be carried out.

    The camera of AI2-THOR stays on a grid of looks. A robot's head is off that grid by its servo's error, so looks
    are allowed up to half a step beyond the task's limits. A look that the head cannot finish would leave the grid.

    Args:
        requested_rad: tilt to which the look leads, up positive.
        step_rad: change of the tilt by the look.
        limits_rad: the task's lowest and highest tilt; None if the task has none.
        head: reach of the robot's head.
        slack_rad: difference from the head's reach that does not matter.
    """
    if limits_rad is None:
        return ""
    low_rad, high_rad = limits_rad
    half_rad = abs(step_rad) / 2
    lowest_rad = max(low_rad - half_rad, head.min_tilt_rad - slack_rad)
    highest_rad = min(high_rad + half_rad, head.max_tilt_rad + slack_rad)
    if lowest_rad <= requested_rad <= highest_rad:
        return ""
    return (
        f"a look to {math.degrees(requested_rad):.1f}° is beyond the limits: the task's are "
        f"{math.degrees(low_rad):.0f}° to {math.degrees(high_rad):.0f}°, the head's "
        f"{math.degrees(head.min_tilt_rad):.0f}° to {math.degrees(head.max_tilt_rad):.0f}°"
    )


def unrest(tilt_rad: float, goal_rad: float) -> str:
    """Description of a head that is not at rest at its goal when its time is over: its angle, and what is left."""
    error_deg = math.degrees(tilt_rad - goal_rad)
    return f"head: not at rest, at tilt {math.degrees(tilt_rad):.1f}° it is {error_deg:+.1f}° from its goal"
