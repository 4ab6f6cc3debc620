"""Color, metric depth and object ids of a compiled scene, seen from anywhere by an ideal pinhole.

The pinhole's principal point may lie anywhere in the image, and its pixels need not be square.

One MuJoCo pass gives color and depth. Geoms outside the field of view are left out of it: in a software renderer
most of the time goes into triangles, seen or not.
"""

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import RenderingUnavailable
from robot_runtime.hal import Intrinsics
from sim_bridge.physics import tags
from sim_bridge.physics.scene_model import Group, SceneModel
from sim_bridge.rendering import gl_context

Vector = NDArray[np.float64]

Rotation = NDArray[np.float64]
"""(3, 3), columns are the camera's right, up and backward axes in ``map`` (OpenGL's camera frame)."""


class SceneRenderer:
    """A renderer of a scene, bound to the thread that made it.

    Attributes:
        render_s: host seconds spent inside MuJoCo's rendering, reading the pixels back included.
        inverse_depth: scale and offset that make 1 / depth in meters of a depth buffer's value: 1 is near, 0 is far.

    Raises:
        RenderingUnavailable: if no OpenGL context can be made, or MuJoCo cannot use it.
    """

    def __init__(self, scene_model: SceneModel, intrinsics: Intrinsics) -> None:
        self.intrinsics = intrinsics
        self.render_s = 0.0
        self._model = model = scene_model.model
        near_m, far_m = model.vis.map.znear, model.vis.map.zfar
        self.inverse_depth = np.float32(1 / near_m - 1 / far_m), np.float32(1 / far_m)
        self._geom_object = scene_model.geom_object
        width, height = intrinsics.width, intrinsics.height
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        self._data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, self._data)
        mujoco.mj_camlight(model, self._data)
        self._gl: gl_context.GLContext | None = gl_context.thread_context()
        try:
            self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        except mujoco.FatalError as error:
            raise RenderingUnavailable(
                f"MuJoCo cannot draw with this OpenGL driver: {error}", "update it, or set MUJOCO_GL=osmesa"
            ) from error
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._scene = mujoco.MjvScene(model, model.ngeom + 8)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION, mujoco.mjtRndFlag.mjRND_HAZE):
            self._scene.flags[flag] = False
        self._option = mujoco.MjvOption()
        self._option.geomgroup[:] = 0
        self._option.geomgroup[Group.VISUAL] = 1
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._camera.fixedcamid = 0
        moving = np.isin(model.geom_bodyid, [movable.body for movable in scene_model.movable])
        moving[tags.geoms(model)] = True
        self._moving = np.flatnonzero(moving)
        self._frustum = _Frustum(model, self._data)
        self._buffers: dict[Intrinsics, tuple[mujoco.MjrRect, NDArray[np.uint8], NDArray[np.float32]]] = {}
        self.set_intrinsics(intrinsics)

    def set_intrinsics(self, intrinsics: Intrinsics) -> None:
        """Set the pinhole; its images may be larger than before."""
        assert self._gl is not None, "used after close()"
        width, height = intrinsics.width, intrinsics.height
        context = self._context
        if width > context.offWidth or height > context.offHeight:
            self._gl.make_current()
            mujoco.mjr_resizeOffscreen(max(width, context.offWidth), max(height, context.offHeight), context)
        if intrinsics not in self._buffers:
            self._buffers[intrinsics] = (
                mujoco.MjrRect(0, 0, width, height),
                np.empty((height, width, 3), np.uint8),
                np.empty((height, width), np.float32),
            )
        self.intrinsics = intrinsics
        self._fovy_deg = math.degrees(2 * math.atan(height / 2 / intrinsics.fy))
        self._edges = _edges(intrinsics)
        self._frustum.set_intrinsics(intrinsics)
        self._rect, self._rgb, self._depth = self._buffers[intrinsics]

    def update_scene(self, state: mujoco.MjData) -> None:
        """Take the poses of objects and tags from ``state``."""
        if self._moving.size:
            self._data.geom_xpos[self._moving] = state.geom_xpos[self._moving]
            self._data.geom_xmat[self._moving] = state.geom_xmat[self._moving]
            self._frustum.follow(self._data)

    def render(self, position: Vector, rotation: Rotation) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Color, uint8 (H, W, 3), and depth along the optical axis in meters, float32 (H, W), of an instant.

        Where there is no surface, depth is that of the sky, farther than ``model.SKY_M``.
        """
        rgb, buffer = self.draw_raw(position, rotation)
        scale, offset = self.inverse_depth
        depth = buffer[::-1] * scale
        depth += offset
        np.reciprocal(depth, out=depth)
        return np.ascontiguousarray(rgb[::-1]), depth

    def draw_raw(
        self, position: Vector, rotation: Rotation, color: bool = True
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Color and depth buffer as OpenGL has them, bottom row first, in memory that the next drawing overwrites.

        Args:
            position: position of the optical center in ``map``.
            rotation: rotation of the camera.
            color: whether color is rendered, at the cost of depth again; else the first array is undefined.
        """
        timer = Stopwatch()
        flags = self._scene.flags
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = not color  # without lights and textures
        try:
            self._draw(position, rotation, self._rgb if color else None, self._depth)
        finally:
            flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = False
        self.render_s += timer.elapsed_s()
        return self._rgb, self._depth

    def segment(self, position: Vector, rotation: Rotation) -> NDArray[np.int32]:
        """Per pixel the index into ``scene.objects`` of what is seen, int32 (H, W); -1 for structure and sky."""
        timer = Stopwatch()
        flags = self._scene.flags
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = True
        try:
            self._draw(position, rotation, self._rgb, None)
        finally:
            flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = False
        self.render_s += timer.elapsed_s()
        lookup = np.full(self._scene.ngeom + 1, -1, np.int32)
        for geom in self._scene.geoms[: self._scene.ngeom]:
            if geom.objtype == mujoco.mjtObj.mjOBJ_GEOM and geom.segid >= 0:
                lookup[geom.segid + 1] = self._geom_object[geom.objid]
        red, green, blue = (self._rgb[::-1, :, channel].astype(np.int32) for channel in range(3))
        return np.asarray(lookup[red + (green << 8) + (blue << 16)])

    def close(self) -> None:
        """Release what is held in the thread's context; may be called twice."""
        if self._gl is not None:
            self._gl.make_current()
            self._context.free()
            self._gl = None

    def _draw(
        self, position: Vector, rotation: Rotation, rgb: NDArray[np.uint8] | None, depth: NDArray[np.float32] | None
    ) -> None:
        assert self._gl is not None, "used after close()"
        self._gl.make_current()
        mujoco.mjr_restoreBuffer(self._context)  # another renderer of this thread may have drawn into its own
        # The model's; other renderers of it use it too.
        self._model.cam_fovy[0] = self._fovy_deg
        self._data.cam_xpos[0] = position
        self._data.cam_xmat[0] = rotation.ravel()
        self._frustum.cull(position, rotation)
        mujoco.mjv_updateScene(
            self._model, self._data, self._option, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL, self._scene
        )
        left, right, bottom, top = self._edges
        for camera in self._scene.camera:  # MuJoCo's are of two eyes
            near = camera.frustum_near
            camera.frustum_center, camera.frustum_width = near * (left + right) / 2, near * (right - left) / 2
            camera.frustum_bottom, camera.frustum_top = near * bottom, near * top
        mujoco.mjr_render(self._rect, self._scene, self._context)
        mujoco.mjr_readPixels(rgb, depth, self._rect, self._context)


def _edges(intrinsics: Intrinsics) -> tuple[float, float, float, float]:
    """Left, right, bottom and top edges of the image, in multiples of the depth (x right, y up)."""
    # The middle of the first pixel is at 0.
    left, right = (-0.5 - intrinsics.cx) / intrinsics.fx, (intrinsics.width - 0.5 - intrinsics.cx) / intrinsics.fx
    top, bottom = (0.5 + intrinsics.cy) / intrinsics.fy, (intrinsics.cy + 0.5 - intrinsics.height) / intrinsics.fy
    return left, right, bottom, top


class _Frustum:
    """Moves visual geoms that lie outside the field of view to a group that is not drawn."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        # Those that another renderer of this model has left out of its view are drawn by this one all the same.
        drawn = np.isin(model.geom_group, (Group.VISUAL, Group.CULLED))
        bounded = drawn & (model.geom_rbound > 0)
        self._geoms = np.flatnonzero(bounded)
        self._centers = data.geom_xpos[self._geoms].copy()
        self._radii = model.geom_rbound[self._geoms].copy()
        self._groups = model.geom_group
        self._planes = np.zeros((4, 3))

    def set_intrinsics(self, intrinsics: Intrinsics) -> None:
        """The field of view is this pinhole's."""
        left, right, bottom, top = _edges(intrinsics)
        # Inward normals of the left, right, bottom and top planes in the camera's frame (x right, y up, z backward).
        planes = np.array([(1, 0, left), (-1, 0, -right), (0, 1, bottom), (0, -1, -top)], np.float64)
        self._planes = planes / np.linalg.norm(planes, axis=1, keepdims=True)

    def follow(self, data: mujoco.MjData) -> None:
        """Take the geoms to be where they are in ``data``."""
        self._centers[:] = data.geom_xpos[self._geoms]

    def cull(self, position: Vector, rotation: Rotation) -> None:
        distance = (self._centers - position) @ (self._planes @ rotation.T).T
        seen = (distance > -self._radii[:, None]).all(axis=1)
        self._groups[self._geoms] = np.where(seen, Group.VISUAL, Group.CULLED)


def camera_rotation(yaw_rad: float, tilt_rad: float) -> Rotation:
    """The rotation of a camera that looks along a heading (counter-clockwise) and a pitch (up positive)."""
    cy, sy, ct, st = math.cos(yaw_rad), math.sin(yaw_rad), math.cos(tilt_rad), math.sin(tilt_rad)
    right, forward = (sy, -cy, 0.0), (cy * ct, sy * ct, st)
    up = (-cy * st, -sy * st, ct)
    return np.column_stack([right, up, np.negative(forward)])
