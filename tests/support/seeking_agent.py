"""An agent that drives to a point goal by decisions of one form, for every robot that they can be carried out on."""

from __future__ import annotations

import math
from typing import Any

FORMS = ("discrete", "velocity", "waypoint", "trajectory", "chunk")
LOGGED = {"velocity": "velocity_control", "waypoint": "waypoint_control", "trajectory": "trajectory_control"}
"""Form -> name of its actions in the log; the others have those of the actions."""

TURN_RAD = math.radians(30)


class Seeking:
    """Turns towards the goal and drives there; stops within 0.25 m of it."""

    needs = ("pointgoal_with_gps_compass",)

    def __init__(self, form: str) -> None:
        self.form = form

    def reset(self) -> None:
        """Nothing is remembered."""

    def act(self, observations: dict[str, Any]) -> Any:
        distance_m, bearing_rad = map(float, observations["pointgoal_with_gps_compass"])
        if distance_m < 0.25:
            return "stop"
        turns = round(bearing_rad / TURN_RAD)
        actions = ["turn_left" if turns > 0 else "turn_right"] * abs(turns) + ["move_forward"]
        if self.form == "discrete":
            return actions[0]
        if self.form == "chunk":
            return {"chunk": actions, "carry_out": min(2, len(actions))}
        if self.form == "waypoint":
            ahead_m = min(distance_m, 0.4)
            x_m, y_m = ahead_m * math.cos(bearing_rad), ahead_m * math.sin(bearing_rad)
            return {"x_m": x_m, "y_m": y_m, "yaw_rad": bearing_rad, "max_duration_s": 10.0}
        if self.form == "velocity" or abs(bearing_rad) > 0.8:
            speed_m_s = 0.2 * max(math.cos(bearing_rad), 0.0) ** 2
            turn_rad_s = max(-0.7, min(0.7, 1.5 * bearing_rad))
            return {"linear_m_s": speed_m_s, "angular_rad_s": turn_rad_s, "settle": False}
        bend = 2 * math.sin(bearing_rad) / distance_m  # of the circle through the goal
        turns_rad = [bend * min(0.05 * number, distance_m) for number in range(1, 13)]
        radius_m = 1 / bend if abs(bend) > 1e-6 else 1e6
        points = [(radius_m * math.sin(turn), radius_m * (1 - math.cos(turn)), turn) for turn in turns_rad]
        return {"trajectory": points, "period_s": 0.25}
