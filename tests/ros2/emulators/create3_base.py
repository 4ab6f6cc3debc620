"""A Create 3 without its network: commands, hazards, reflexes, limits and parameters.

The numbers are those of create3_sim (jazzy): motion_control_node.hpp, reflex_behavior.hpp, bumpers.hpp, control.yaml.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tests.ros2.emulators.base import Base
from tests.ros2.emulators.world import Pose, Wheels, World

RADIUS_M = 0.171
TRACK_M = 0.233
COMMAND_TIMEOUT_S = 0.5
MAX_TURN_RADPS = 1.9
MAX_SPEED_MPS = {"none": 0.306, "backup_only": 0.306, "full": 0.46}

BACKUP_LIMIT, BUMP, CLIFF, STALL, WHEEL_DROP, OBJECT_PROXIMITY = range(6)
ZONES = ("bump_right", "bump_front_right", "bump_front_center", "bump_front_left", "bump_left")
BACKUP_WARN_M, BACKUP_STOP_M = 0.05, 0.15
REFLEX_MPS, REFLEX_ARC_MPS, REFLEX_ARC_RADPS = -0.14, -0.1, math.pi / 16
REFLEX_MIN_M, REFLEX_MAX_M, REFLEX_MAX_S = 0.05, 0.15, 10.0
REFLEXES = {BUMP: "REFLEX_BUMP", CLIFF: "REFLEX_CLIFF", STALL: "REFLEX_STUCK", WHEEL_DROP: "REFLEX_WHEEL_DROP"}


def zone(bearing_rad: float) -> str:
    """The bumper's frame for a bearing from -90 to 90 degrees."""
    return ZONES[min(int((bearing_rad + math.pi / 2) / (math.pi / 5)), 4)]


@dataclass
class _Reflex:
    hazard: int
    turn: float
    started_s: float
    start: Pose


@dataclass
class Create3(Base):
    """The base.

    Attributes:
        parameters: of ``/motion_control``, by name.
        forced: frames of hazards that a test has set, by kind.
        kidnapped: whether a test holds it in the air.
        goal: velocity of a drive goal that runs.
        reflexes_keep_acting: whether switching reflexes off has no effect, as some firmware has it.
        reflex: the one that backs off now.
        backup_m: how far it may still go back without ``safety_override``.
        seen: hazards of the last step.
    """

    parameters: dict[str, Any] = field(default_factory=dict)
    forced: dict[str, list[str]] = field(default_factory=lambda: {"bump": [], "cliff": [], "wheel_drop": []})
    kidnapped: bool = False
    goal: tuple[float, float] | None = None
    reflexes_keep_acting: bool = False
    reflex: _Reflex | None = None
    backup_m: float = 0.0
    seen: frozenset[tuple[int, str]] = frozenset()

    @classmethod
    def made(cls, walls: list[Any], pose: Pose, parameters: dict[str, Any]) -> Create3:
        defaults = {
            "safety_override": "none",
            "reflexes_enabled": True,
            "reflexes.REFLEX_BUMP": True,
            "reflexes.REFLEX_CLIFF": True,
            "reflexes.REFLEX_STUCK": True,
            "reflexes.REFLEX_WHEEL_DROP": True,
        }
        return cls(World(walls, RADIUS_M), Wheels(TRACK_M), pose, parameters=defaults | parameters)

    def target(self, now_s: float) -> tuple[float, float]:
        if self.reflex:
            return (REFLEX_ARC_MPS, self.reflex.turn) if self.reflex.turn else (REFLEX_MPS, 0.0)
        if self.goal:
            return self._limited(*self.goal)
        if self.command_at_s is None or now_s - self.command_at_s > COMMAND_TIMEOUT_S:
            return 0.0, 0.0
        return self._limited(*self.commanded)

    def obeys(self) -> bool:
        return not (self.reflex or self.goal)

    def step(self, now_s: float) -> None:
        before = self.odometry
        super().step(now_s)
        forward_m = (self.odometry.x_m - before.x_m) * math.cos(before.yaw_rad)
        forward_m += (self.odometry.y_m - before.y_m) * math.sin(before.yaw_rad)
        self.backup_m = min(self.backup_m + forward_m, BACKUP_STOP_M)
        hazards = frozenset(self.hazards())
        self._react(hazards, now_s)
        self.seen = hazards

    def restart(self) -> None:
        super().restart()
        self.reflex, self.goal, self.backup_m, self.seen = None, None, 0.0, frozenset()

    def hazards(self) -> list[tuple[int, str]]:
        pressed = {zone(bearing) for bearing in self.world.contacts_rad(self.pose)} | set(self.forced["bump"])
        found = [(BUMP, frame) for frame in ZONES if frame in pressed]
        found += [(CLIFF, frame) for frame in self.forced["cliff"]]
        found += [(WHEEL_DROP, frame) for frame in self.forced["wheel_drop"]]
        if self.parameters["safety_override"] == "none" and self.backup_m <= BACKUP_WARN_M:
            found.append((BACKUP_LIMIT, "base_link"))
        return found

    @property
    def is_kidnapped(self) -> bool:
        return self.kidnapped or len(self.forced["wheel_drop"]) == 2

    def command(self, name: str, value: Any) -> None:
        """Also ``bump``, ``cliff``, ``wheel_drop`` (lists of frames), ``kidnapped``, ``reflexes_keep_acting``,
        ``goal`` ([v, w] of a drive goal that runs, or null), ``parameter`` ([name, value]), ``reset_pose`` (x, y, yaw).
        """
        if name in self.forced:
            self.forced[name] = list(value)
        elif name in ("kidnapped", "reflexes_keep_acting"):
            self.backup_m = 0.0 if name == "kidnapped" and self.kidnapped and not value else self.backup_m
            setattr(self, name, bool(value))
        elif name == "goal":
            self.goal = (float(value[0]), float(value[1])) if value else None
        elif name == "parameter":
            self.parameters[value[0]] = value[1]
        elif name == "reset_pose":
            self.odometry = Pose(*map(float, value))
        else:
            super().command(name, value)

    def state(self) -> dict[str, Any]:
        return super().state() | {"reflex": self.reflex is not None, "parameters": self.parameters}

    def _react(self, hazards: frozenset[tuple[int, str]], now_s: float) -> None:
        """Start a reflex at a new hazard, and end one that has backed off."""
        active = [hazard for hazard in sorted(hazards) if self._is_enabled(hazard[0])]
        if self.reflex:
            moved_m = math.dist((self.odometry.x_m, self.odometry.y_m), (self.reflex.start.x_m, self.reflex.start.y_m))
            cleared = not active and moved_m >= REFLEX_MIN_M
            if cleared or moved_m >= REFLEX_MAX_M or now_s - self.reflex.started_s > REFLEX_MAX_S:
                self.reflex, self.commanded, self.command_at_s = None, (0.0, 0.0), None
        elif new := [hazard for hazard in active if hazard not in self.seen]:
            turn = 0.0
            if new[0][0] == CLIFF and len(new) == 1:
                turn = -REFLEX_ARC_RADPS if "left" in new[0][1] else REFLEX_ARC_RADPS
            self.reflex = _Reflex(new[0][0], turn, now_s, self.odometry)

    def _is_enabled(self, hazard: int) -> bool:
        if hazard not in REFLEXES:
            return False
        if self.parameters["safety_override"] == "full" and hazard == CLIFF:
            return False
        asked = self.parameters["reflexes_enabled"] and self.parameters[f"reflexes.{REFLEXES[hazard]}"]
        return bool(asked or self.reflexes_keep_acting)

    def _limited(self, v_mps: float, w_radps: float) -> tuple[float, float]:
        if v_mps < 0 and self.parameters["safety_override"] == "none" and self.backup_m <= 0.0:
            return 0.0, 0.0
        w_radps = min(max(w_radps, -MAX_TURN_RADPS), MAX_TURN_RADPS)
        fastest = abs(v_mps) + abs(w_radps) * TRACK_M / 2
        scale = min(1.0, MAX_SPEED_MPS[self.parameters["safety_override"]] / fastest) if fastest else 1.0
        return v_mps * scale, w_radps * scale
