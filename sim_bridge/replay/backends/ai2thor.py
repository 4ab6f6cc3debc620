"""Replay backend of AI2-THOR, whose LoCoBot is the body and whose third-party camera is the sensor.

Written against ai2thor 5.0 (``ai2thor/controller.py`` and ``server.py``; of its simulator ``AgentManager.cs`` and
``LocobotFPSAgentController.cs``). THOR's frame is left-handed, y up; angles are degrees, clockwise and down positive
(:mod:`robot_runtime.common.geometry`).
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.geometry import (
    SE2,
    ros_to_thor_position,
    thor_horizon_to_tilt,
    thor_rotation_to_yaw,
    thor_to_ros_position,
    tilt_to_thor_horizon_deg,
    yaw_to_thor_rotation_deg,
)
from robot_runtime.errors import ConfigError, DriverMissing, InvalidStart
from robot_runtime.hal.simulation import Pose3
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.backends.base import UnsupportedBySimulator
from sim_bridge.replay.backends.external import ExternalBackend, axes_from, imported
from sim_bridge.replay.backends.pinhole_camera import PinholeCamera, pinhole_camera

INSTALL = "pip install 'ai2thor>=5'"
OLDEST = 5

TILT_DEG = 30.0
"""Angle of ``LookUp`` and ``LookDown`` of THOR's LoCoBot; it takes no other."""

_SCENE = re.compile(r"FloorPlan\w+")
_AXES = axes_from(ros_to_thor_position)

_BEHIND_SKY = 0.999
"""Part of the range beyond which depth is the sky's, that is, none."""


@dataclass(frozen=True)
class ThorOptions(config.Strict):
    """``--twin-arg KEY=VALUE``.

    Attributes:
        scene: ``FloorPlan_Val1_1``; None for the episode's own.
        noise: whether actions have RoboTHOR's errors.
        platform: ``Linux64`` or ``CloudRendering``; None for ai2thor's choice.
        executable: path of a build to use instead of the one that ai2thor downloads.
        start_s: time limit for starting the simulator.
    """

    scene: str | None = None
    noise: bool = False
    platform: str | None = None
    executable: str | None = None
    start_s: float = 300.0


def make_backend(
    header: EpisodeHeader, scene: Scene | None, images: bool, options: Mapping[str, Any], where: str
) -> ThorBackend:
    """Make an AI2-THOR backend; see ``BackendFactory``."""
    parsed = config.parse(dict(options), ThorOptions, where)
    return ThorBackend(_library(where), header, scene, images, parsed, where)


class ThorBackend(ExternalBackend):
    """AI2-THOR in the scene of a log's episode.

    Raises:
        ConfigError: the scene is none of AI2-THOR's.
        DriverMissing: there is no build of the simulator for this machine, or it does not start.
        UnsupportedBySimulator: it cannot render the log's camera.
    """

    def __init__(
        self,
        library: ModuleType,
        header: EpisodeHeader,
        scene: Scene | None,
        images: bool,
        options: ThorOptions,
        where: str,
    ) -> None:
        super().__init__(header, scene, images)
        floor_plan = options.scene or header.episode.scene
        if not _SCENE.fullmatch(floor_plan):
            raise ConfigError(
                f"{where}: the log's scene {floor_plan!r} is not one of AI2-THOR's",
                "name one: --twin-arg scene=FloorPlan_Val1_1",
            )
        self._camera_id: int | None = None
        self._drawn = pinhole_camera(self._lens, "AI2-THOR")
        self._controller = _started(library, floor_plan, self._drawn, options, where)
        self._event = self._controller.last_event
        self._height_m = float(self._event.metadata["agent"]["position"]["y"])

    @property
    def name(self) -> str:
        return "AI2-THOR"

    def place(self, pose: SE2, tilt_rad: float) -> None:
        event = self._send(
            "TeleportFull",
            position=_point(*ros_to_thor_position(pose.x_m, pose.y_m, self._height_m)),
            rotation=_point(0.0, yaw_to_thor_rotation_deg(pose.yaw_rad), 0.0),
            horizon=tilt_to_thor_horizon_deg(tilt_rad),
        )
        if not event.metadata["lastActionSuccess"]:
            raise InvalidStart(
                f"{self.name}: TeleportFull: the robot does not fit at ({pose.x_m:.2f}, {pose.y_m:.2f}): "
                f"{_reason(event)}",
                "check that the simulator's scene is the log's (--twin-arg scene=...)",
            )
        self.check_place(pose, self.robot_state()[0], "TeleportFull")

    def robot_state(self) -> tuple[SE2, float]:
        agent = self._event.metadata["agent"]
        x_m, y_m, _ = thor_to_ros_position(*(float(agent["position"][axis]) for axis in "xyz"))
        yaw_rad = thor_rotation_to_yaw(float(agent["rotation"]["y"]))
        return SE2(x_m, y_m, yaw_rad), thor_horizon_to_tilt(float(agent["cameraHorizon"]))

    def move(self, action: Action) -> bool:
        magnitudes = self.task.magnitudes
        if action in (Action.LOOK_UP, Action.LOOK_DOWN) and magnitudes.tilt_deg != TILT_DEG:
            raise self.unsupported(f"its LoCoBot tilts by {TILT_DEG:g}°, the task by {magnitudes.tilt_deg:g}°")
        if action is Action.MOVE_FORWARD:
            event = self._send("MoveAhead", moveMagnitude=magnitudes.forward_m)
        elif action is Action.TURN_LEFT:
            event = self._send("RotateLeft", degrees=magnitudes.turn_deg)
        elif action is Action.TURN_RIGHT:
            event = self._send("RotateRight", degrees=magnitudes.turn_deg)
        else:
            # It fails at the limit of the head; that is not a contact.
            self._send("LookUp" if action is Action.LOOK_UP else "LookDown")
            return False
        return not event.metadata["lastActionSuccess"]

    def draw(self, camera: PinholeCamera, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        if (camera.width, camera.height) != (self._drawn.width, self._drawn.height):
            self._require("ChangeResolution", x=camera.width, y=camera.height)
        self._drawn = camera
        place = {
            "position": _point(*(_AXES @ map_from_camera[:3, 3])),
            "rotation": _point(*_euler_deg(_AXES @ map_from_camera[:3, :3] * (1, -1, 1))),
            "fieldOfView": camera.vfov_deg,
        }
        if self._camera_id is None:
            event = self._require("AddThirdPartyCamera", **place)
            self._camera_id = 0
        else:
            event = self._require("UpdateThirdPartyCamera", thirdPartyCameraId=self._camera_id, **place)
        if not event.third_party_camera_frames or not event.third_party_depth_frames:
            raise UnsupportedBySimulator(f"{self.name}: sent no images", "start it with a display or a GPU")
        rgb = np.asarray(event.third_party_camera_frames[0])[:, :, :3]
        depth_m = np.array(event.third_party_depth_frames[0], np.float32)
        # Unity's depth from 0 at the eye to 1 at the far plane is sent multiplied by far - near (ai2thor issue 1301).
        far_m, near_m = self._controller.server.camera_far_plane, self._controller.server.camera_near_plane
        depth_m *= np.float32(far_m / (far_m - near_m))
        depth_m[depth_m >= _BEHIND_SKY * far_m] = 0
        return rgb.astype(np.uint8, copy=False), depth_m

    def close(self) -> None:
        controller, self._controller = self._controller, None
        if controller is not None:
            controller.stop()

    def _require(self, action: str, **arguments: Any) -> Any:
        """The event of an action that must succeed. Raises ``UnsupportedBySimulator`` if it failed."""
        event = self._send(action, **arguments)
        if not event.metadata["lastActionSuccess"]:
            raise UnsupportedBySimulator(
                f"{self.name}: {action} failed: {_reason(event)}", "use ai2thor 5.0 and the build it names"
            )
        return event

    def _send(self, action: str, **arguments: Any) -> Any:
        try:
            self._event = self._controller.step(action=action, **arguments)
        except (ValueError, RuntimeError, OSError) as error:
            raise UnsupportedBySimulator(
                f"{self.name}: {action}: {error}", "use ai2thor 5.0 and the build it names; its log says more"
            ) from error
        return self._event


def _started(library: ModuleType, scene: str, camera: PinholeCamera, options: ThorOptions, where: str) -> Any:
    platform = None
    if options.platform is not None:
        platform = getattr(importlib.import_module("ai2thor.platform"), options.platform, None)
        if platform is None:
            raise ConfigError(f"{where}: ai2thor has no platform {options.platform!r}", "use Linux64 or CloudRendering")
    try:
        return library.Controller(
            scene=scene,
            agentMode="locobot",
            snapToGrid=False,
            applyActionNoise=options.noise,
            makeAgentsVisible=False,  # the camera is inside the body
            renderDepthImage=True,
            width=camera.width,
            height=camera.height,
            platform=platform,
            local_executable_path=options.executable,
            server_start_timeout=options.start_s,
        )
    except Exception as error:
        raise DriverMissing(
            f"{where}: AI2-THOR does not start: {error}",
            "it downloads its simulator when it is first started: give it network and a display (or "
            "--twin-arg platform=CloudRendering), or name a build with --twin-arg executable=FILE",
        ) from error


def _library(where: str) -> ModuleType:
    version = str(imported("ai2thor", where, INSTALL).__version__)
    if not version.split(".")[0].isdigit() or int(version.split(".")[0]) < OLDEST:
        raise DriverMissing(f"{where}: ai2thor {version} is not {OLDEST} or later", INSTALL)
    return imported("ai2thor.controller", where, INSTALL)


def _point(x: float, y: float, z: float) -> dict[str, float]:
    return {"x": float(x), "y": float(y), "z": float(z)}


def _euler_deg(axes: NDArray[np.float64]) -> tuple[float, float, float]:
    """Unity's Euler angles x, y, z, applied in the order z, x, y, of a rotation with columns right, up and forward."""
    pitch_rad = -math.asin(min(max(float(axes[1, 2]), -1.0), 1.0))
    yaw_rad = math.atan2(axes[0, 2], axes[2, 2])
    roll_rad = math.atan2(axes[1, 0], axes[1, 1])
    return math.degrees(pitch_rad), math.degrees(yaw_rad), math.degrees(roll_rad)


def _reason(event: Any) -> str:
    return str(event.metadata.get("errorMessage") or "it gave no reason")
