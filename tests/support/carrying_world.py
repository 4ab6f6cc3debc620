"""A world for agents that carry objects, without a simulator: exact moves, walls from the map, rays against boxes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.policies.baselines.oracle import Oracle
from robot_runtime.policy import World
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.crosshair import Pointer, settings
from robot_runtime.task_kinds.rearrangement.sensors import RearrangementState
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task

TOUCH_M = 0.04
"""A plan may lead so near to a wall, in cells that are coarser than a robot."""


class CarryingWorld:
    """One episode. A move into a wall does not happen; a ray takes the object whose middle it passes nearest."""

    def __init__(self, task: Task, scene: Scene, episode: Episode) -> None:
        self.task, self.scene, self.episode = task, scene, episode
        self.pose, self.tilt_rad = episode.start, task.camera.tilt_rad
        self.objects: dict[str, ObjectPose] = {item.id: item.start for item in Layout.of(episode).objects}
        self.held: list[tuple[str, ObjectPose]] = []
        self.phase = "walkthrough" if settings(task).walkthrough_steps else "unshuffle"
        self.counts: Counter[str] = Counter()
        self._pointer = Pointer.of(task)

    def world(self) -> World:
        return World(
            self.scene,
            self.episode,
            lambda: self.pose,
            lambda: self.tilt_rad,
            lambda: RearrangementState(self.objects, tuple(name for name, _ in self.held), phase=self.phase),
        )

    def run(self, agent: Oracle, max_steps: int | None = None) -> None:
        """Until the agent stops."""
        agent.reset(self.task, 0, self.world())
        for _ in range(max_steps or self.task.max_steps):
            action = agent.act({})
            assert action in self.task.actions
            if action is Action.STOP and self.phase == "unshuffle":
                self.counts["stop"] += 1
                return
            self.step(action)

    def step(self, action: Action) -> None:
        if action is Action.STOP:
            self.phase, self.pose = "unshuffle", self.episode.start
        elif action is Action.GRAB_RELEASE:
            self._grab_release()
        else:
            self.counts[str(action)] += 1
            asked = self.task.magnitudes.displacement(action)
            self.tilt_rad += asked.tilt_rad
            moved = self.pose @ SE2(asked.forward_m, 0.0, asked.turn_rad)
            if asked.forward_m and self._clearance_m(moved) < self.task.robot_radius_m - TOUCH_M:
                self.counts["blocked"] += 1
                return
            self.pose = moved

    def _clearance_m(self, pose: SE2) -> float:
        return float(self.scene.map.clearance_m()[self.scene.map.to_cell(pose.x_m, pose.y_m)])

    def is_done(self, within_m: float) -> bool:
        wanted = rearrangement.to_move(self.episode)
        return not self.held and all(
            item.goal is not None and math.dist(self.objects[item.id].position, item.goal.position) <= within_m
            for item in wanted
        )

    def _grab_release(self) -> None:
        if self.held:
            name, relative = self.held.pop()
            pose = relative.moved(self.pose)
            goals = {item.id: item.goal for item in Layout.of(self.episode).objects if item.goal is not None}
            # It falls on what its goal lies on.
            self.objects[name] = replace(pose, position=(*pose.position[:2], goals[name].position[2]))
            self.counts["released"] += 1
            return
        ray = min(self._pointer.rays, key=lambda ray: abs(ray.tilt_rad - self.tilt_rad))
        assert abs(ray.tilt_rad - self.tilt_rad) < 1e-6
        here = [np.array([value]) for value in (self.pose.x_m, self.pose.y_m, self.pose.yaw_rad)]

        def worth(name: str) -> float:
            item = rearrangement.scene_object(self.scene, self.episode, name)
            box = rearrangement.upright_box(item, self.objects[name])
            return float(self._pointer.hits(here[0], here[1], here[2], ray, box)[0])

        best = max(self.objects, key=worth)
        self.counts["grabbed" if worth(best) > 0 else "missed"] += 1
        if worth(best) > 0:
            self.held.append((best, self.objects.pop(best).moved(self.pose.inverse())))
