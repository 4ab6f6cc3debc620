"""The part of ai2thor 5.0's Python interface that a twin may use, around the synthetic flat.

Arguments, metadata and units are those of ``ai2thor/controller.py`` and ``server.py``, and of the actions of
``AgentManager.cs`` and ``LocobotFPSAgentController.cs``; what they do not take is refused as ai2thor refuses it. Its
axes are THOR's: left-handed, y up, angles in degrees clockwise, horizon down positive.
"""

# ruff: noqa: N802, N803 - the names are AI2-THOR's

from __future__ import annotations

import inspect
import math
from types import ModuleType, SimpleNamespace
from typing import Any

import flat_triangles
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

AGENT_Y_M = 0.9009992
NEAR_M, FAR_M = 0.1, 20.0
_INITIALIZATION = {"agentMode", "snapToGrid", "applyActionNoise", "makeAgentsVisible", "renderDepthImage"}


def axes(points: Floats) -> Floats:
    """Points of the flat's map in THOR's axes."""
    return np.stack([-points[..., 1], points[..., 2], points[..., 0]], axis=-1)


def turned(x: float, y: float, z: float) -> Floats:
    """Unity's rotation by angles in degrees, columns right, up and forward: about z, then x, then y."""
    (cx, sx), (cy, sy), (cz, sz) = ((math.cos(math.radians(a)), math.sin(math.radians(a))) for a in (x, y, z))
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return about_y @ about_x @ about_z


class Controller:
    """``ai2thor.controller.Controller``."""

    made: list[Controller]

    def __init__(
        self,
        quality: str = "Ultra",
        headless: bool = False,
        local_executable_path: str | None = None,
        width: int = 300,
        height: int = 300,
        scene: str | None = None,
        gpu_device: int | None = None,
        platform: object | None = None,
        server_timeout: float | None = 100.0,
        server_start_timeout: float = 300.0,
        **unity_initialization_parameters: Any,
    ) -> None:
        assert set(unity_initialization_parameters) <= _INITIALIZATION, unity_initialization_parameters
        assert unity_initialization_parameters["agentMode"] == "locobot"
        if local_executable_path == "no-build":
            raise ValueError("Invalid commit_id: f0825767 - no build exists for arch=Linux platforms=Linux64")
        self.parameters = unity_initialization_parameters
        self.scene, self.width, self.height, self.platform = scene, width, height, platform
        self.server = SimpleNamespace(camera_near_plane=NEAR_M, camera_far_plane=FAR_M)
        self.images = local_executable_path != "blind"
        self.position = {"x": -1.0, "y": AGENT_Y_M, "z": 1.0}
        self.yaw_deg = self.horizon_deg = 0.0
        self.cameras: list[tuple[dict[str, float], dict[str, float], float]] = []
        self.actions: list[str] = []
        self.stopped = False
        self.made.append(self)
        self.last_event = self._event()

    def step(self, action: str | None = None, **action_args: Any) -> SimpleNamespace:
        assert not self.stopped
        method = getattr(self, f"do_{action}", None)
        if method is None:
            raise ValueError(f"{action} is not a valid action")
        try:
            inspect.signature(method).bind(**action_args)
        except TypeError as error:
            raise ValueError(f"{action}: {error}") from error
        self.actions.append(str(action))
        self.last_event = self._event(*(method(**action_args) or ()))
        return self.last_event

    def stop(self) -> None:
        assert not self.stopped
        self.stopped = True

    # --- actions: returns nothing, or False and why it failed --------------------------------------------------------

    def do_TeleportFull(
        self, position: dict[str, float], rotation: dict[str, float], horizon: float, forceAction: bool = False
    ) -> tuple[bool, str] | None:
        assert abs(position["y"] - AGENT_Y_M) < 0.05
        assert set(rotation) == {"x", "y", "z"}
        if not flat_triangles.free(position["z"], -position["x"]):
            return False, "Collided with: Wall"
        self.position, self.yaw_deg, self.horizon_deg = dict(position), rotation["y"] % 360, horizon
        return None

    def do_MoveAhead(
        self, moveMagnitude: float | None = None, noise: float = 0.0, forceAction: bool = False
    ) -> tuple[bool, str] | None:
        assert moveMagnitude
        ahead = turned(0, self.yaw_deg, 0)[:, 2] * moveMagnitude
        x, z = self.position["x"] + ahead[0], self.position["z"] + ahead[2]
        if flat_triangles.as_far_as_free(self.position["z"], -self.position["x"], z, -x) != (z, -x):
            return False, "StandardIslandHeight is blocking Agent 0 from moving by (0.0, 0.0, 0.25)."
        self.position = {**self.position, "x": x, "z": z}
        return None

    def do_RotateLeft(self, degrees: float = 0.0) -> None:
        self.yaw_deg = (self.yaw_deg - degrees) % 360

    def do_RotateRight(self, degrees: float = 0.0) -> None:
        self.yaw_deg = (self.yaw_deg + degrees) % 360

    def do_LookUp(self) -> tuple[bool, str] | None:
        return self._look(-30.0)

    def do_LookDown(self) -> tuple[bool, str] | None:
        return self._look(30.0)

    def _look(self, degrees: float) -> tuple[bool, str] | None:
        if abs(self.horizon_deg + degrees) > 31:
            return False, "can't look beyond 30 degrees from the forward horizon"
        self.horizon_deg += degrees
        return None

    def do_ChangeResolution(self, x: int, y: int) -> None:
        self.width, self.height = x, y

    def do_AddThirdPartyCamera(
        self, position: dict[str, float], rotation: dict[str, float], fieldOfView: float = 90.0
    ) -> None:
        assert 0 < fieldOfView < 180
        self.cameras.append((position, rotation, fieldOfView))

    def do_UpdateThirdPartyCamera(
        self,
        thirdPartyCameraId: int = 0,
        position: dict[str, float] | None = None,
        rotation: dict[str, float] | None = None,
        fieldOfView: float | None = None,
    ) -> None:
        assert position is not None
        assert rotation is not None
        assert fieldOfView is not None
        self.cameras[thirdPartyCameraId] = position, rotation, fieldOfView

    # --- events ------------------------------------------------------------------------------------------------------

    def _event(self, success: bool = True, message: str = "") -> SimpleNamespace:
        seen = [self._seen(*camera) for camera in self.cameras] if self.images else []
        agent = {
            "position": dict(self.position),
            "rotation": {"x": 0.0, "y": self.yaw_deg, "z": 0.0},
            "cameraHorizon": self.horizon_deg,
        }
        return SimpleNamespace(
            metadata={"agent": agent, "lastActionSuccess": success, "errorMessage": message},
            third_party_camera_frames=[rgb for rgb, _ in seen],
            third_party_depth_frames=[depth_m for _, depth_m in seen],
        )

    def _seen(
        self, position: dict[str, float], rotation: dict[str, float], vfov_deg: float
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        focal = self.height / 2 / math.tan(math.radians(vfov_deg) / 2)
        x, y = np.meshgrid(np.arange(self.width) + 0.5 - self.width / 2, np.arange(self.height) + 0.5 - self.height / 2)
        rays = np.stack([x / focal, -y / focal, np.ones(x.shape)], axis=-1) @ turned(**rotation).T
        eye = np.array([position[axis] for axis in "xyz"])
        rgb, depth_m = flat_triangles.draw(axes, eye, rays)
        alpha = np.full((self.height, self.width, 1), 255, np.uint8)  # CloudRendering sends it
        share = np.where(depth_m > 0, np.minimum(depth_m / FAR_M, 1.0), 1.0)
        sent = (share * (FAR_M - NEAR_M)).astype(np.float32)  # not times FAR_M: ai2thor issue 1301
        return np.concatenate([rgb, alpha], axis=-1), sent


def ai2thor(version: str | None = "5.0.0") -> dict[str, ModuleType]:
    """Modules like ai2thor's, by name."""
    package, controller, platform = (ModuleType(name) for name in ("ai2thor", "ai2thor.controller", "ai2thor.platform"))
    package.__version__ = version  # type: ignore[attr-defined]
    controller.Controller = type("Controller", (Controller,), {"made": []})  # type: ignore[attr-defined]
    platform.CloudRendering = type("CloudRendering", (), {})  # type: ignore[attr-defined]
    package.controller, package.platform = controller, platform  # type: ignore[attr-defined]
    return {module.__name__: module for module in (package, controller, platform)}
