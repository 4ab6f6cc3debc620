"""The policy's map memory: fixed geometry without learned parameters, exportable to ONNX.

The recurrent state holds a square window of evidence around the robot, with the axes of the start frame and scrolled by
integer cells as the robot moves, so that nothing blurs. Each step adds the depth image and reads two views that rotate
with the robot. The floor in the image of a camera at 0.88 m begins 1.4 m ahead, so a policy without memory cannot know
what is to its sides.

Evidence is an integer: positive for an obstacle, negative for free floor, 0 for unseen cells.
"""

import math

import torch
from torch import Tensor, nn

from robot_runtime.errors import ConfigError
from robot_runtime.tasks.task import Task

WIDTH, HEIGHT = 160, 120
"""Image size; the teacher reads as many pixels of a larger image."""

RESOLUTION_M = 0.05
CELLS = 192
"""Cells along the window's edge: 4.8 m to every side."""

POOL = 4
COARSE_CELLS = CELLS // POOL
FINE_CELLS = 64
POSE_NUMBERS = 3
MAP_NUMBERS = CELLS * CELLS + POSE_NUMBERS
MOTION_NUMBERS = 3

HIT, MISS = 3.0, 1.0
MOST, LEAST = 9.0, -3.0
"""Bounds of the evidence."""

CLEAR_RANGE_M = 6.0
BAND_LOW_M, BAND_LOW_PER_M, BAND_HIGH_M = 0.04, 0.008, 0.92
"""Range of obstacle heights; depth errors lift the floor with distance."""

BLOCKED_FRACTION = 0.8
"""A forward move of less than this fraction of its length was blocked."""

FORWARD = 1
"""The action's id, in the order of the task's actions."""

_EDGE = 1e-4


class MapMemory(nn.Module):
    """One step of mapping.

    Images have :data:`WIDTH` x :data:`HEIGHT` pixels, each the first of a block of the camera's pixels, as torch's mode
    "nearest" resamples.
    """

    _left: Tensor
    _down: Tensor
    _cell: Tensor
    _fine_ahead: Tensor
    _fine_left: Tensor
    _coarse_ahead: Tensor
    _coarse_left: Tensor

    def __init__(self, task: Task) -> None:
        super().__init__()
        camera, k = task.camera, task.camera.intrinsics
        step = camera.width // WIDTH
        if (WIDTH * step, HEIGHT * step) != (camera.width, camera.height):
            raise ConfigError(
                f"task {task.name!r} has images of {camera.width}x{camera.height}",
                f"choose one whose images are an integer multiple of {WIDTH}x{HEIGHT}",
            )
        left = (k.cx - step * torch.arange(WIDTH)) / k.fx
        down = (step * torch.arange(HEIGHT) - k.cy) / k.fy
        self._column_of_axis, self._columns_per_tangent = k.cx / step, k.fx / step
        self._near_m, self._span_m = camera.depth_min_m, camera.depth_max_m - camera.depth_min_m
        self._camera_height_m = camera.height_m
        self._radius_m = task.robot_radius_m
        self._forward_m = task.magnitudes.forward_m
        self._turn_rad = math.radians(task.magnitudes.turn_deg)
        self._floor_from_m = camera.height_m / float(down.max())
        self.register_buffer("_left", left.float()[None, None, :], persistent=False)
        self.register_buffer("_down", down.float()[None, :, None], persistent=False)
        self.register_buffer("_cell", torch.arange(CELLS, dtype=torch.float32), persistent=False)
        for name, cells, step_m in (("fine", FINE_CELLS, RESOLUTION_M), ("coarse", COARSE_CELLS, RESOLUTION_M * POOL)):
            middle = (torch.arange(cells, dtype=torch.float32) - (cells - 1) / 2) * step_m
            # Row 0 is farthest ahead, column 0 farthest to the left.
            ahead, left = torch.meshgrid(-middle, -middle, indexing="ij")
            self.register_buffer(f"_{name}_ahead", ahead.reshape(1, -1).contiguous(), persistent=False)
            self.register_buffer(f"_{name}_left", left.reshape(1, -1).contiguous(), persistent=False)

    def forward(
        self, depth: Tensor, gps: Tensor, compass: Tensor, prev_action: Tensor, mask: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Add one image to the map.

        Args:
            depth: (B, HEIGHT, WIDTH, 1), normalized.
            gps: (B, 2).
            compass: (B, 1).
            prev_action: int64 (B, 1).
            mask: bool (B, 1), False at an episode's first step to clear ``state``.
            state: (B, MAP_NUMBERS).

        Returns:
            fine (B, FINE_CELLS, FINE_CELLS), the evidence in the robot's frame, ahead is up; coarse
            (B, 2, COARSE_CELLS, COARSE_CELLS), greatest evidence and share of seen cells per block of cells; motion
            (B, MOTION_NUMBERS), effect of the last action, in units of an unhindered one; the new state.
        """
        x, y, yaw = gps[:, :1], -gps[:, 1:2], compass
        state = torch.where(mask, state, 0.0)
        last = torch.where(mask, state[:, -POSE_NUMBERS:], torch.cat([x, y, yaw], 1))
        motion = self._motion(last, x, y, yaw)
        evidence = self._scrolled(state[:, :-POSE_NUMBERS].reshape(-1, CELLS, CELLS), last, x, y)
        blocked = mask & (prev_action == FORWARD) & (motion[:, :1] < BLOCKED_FRACTION)
        evidence = self._written(evidence, depth, x, y, yaw, blocked)
        fine, coarse = self._views(evidence, x, y, yaw)
        return fine, coarse, motion, torch.cat([evidence.reshape(-1, CELLS * CELLS), x, y, yaw], 1)

    def _motion(self, last: Tensor, x: Tensor, y: Tensor, yaw: Tensor) -> Tensor:
        dx, dy, was = x - last[:, 0:1], y - last[:, 1:2], last[:, 2:3]
        cos, sin = torch.cos(was), torch.sin(was)
        turn = torch.atan2(torch.sin(yaw - was), torch.cos(yaw - was))
        along, across = cos * dx + sin * dy, cos * dy - sin * dx
        return torch.cat([along / self._forward_m, across / self._forward_m, turn / self._turn_rad], 1)

    def _scrolled(self, evidence: Tensor, last: Tensor, x: Tensor, y: Tensor) -> Tensor:
        columns = self._cell[None, :] + _cell_of(x) - _cell_of(last[:, 0:1])
        rows = self._cell[None, :] + _cell_of(y) - _cell_of(last[:, 1:2])
        inside = _inside(rows)[:, :, None] & _inside(columns)[:, None, :]
        rows, columns = rows.clamp(0, CELLS - 1).long(), columns.clamp(0, CELLS - 1).long()
        index = (rows[:, :, None] * CELLS + columns[:, None, :]).reshape(-1, CELLS * CELLS)
        moved = torch.gather(evidence.reshape(-1, CELLS * CELLS), 1, index).reshape(-1, CELLS, CELLS)
        return torch.where(inside, moved, 0.0)

    def _written(self, evidence: Tensor, depth: Tensor, x: Tensor, y: Tensor, yaw: Tensor, blocked: Tensor) -> Tensor:
        """The evidence after one image."""
        fraction = depth[..., 0]
        measured = (fraction > _EDGE) & (fraction < 1 - _EDGE)
        d = self._near_m + self._span_m * fraction
        height = self._camera_height_m - d * self._down
        obstacle = measured & (height > BAND_LOW_M + BAND_LOW_PER_M * d) & (height < BAND_HIGH_M)
        hit = self._hit(d, obstacle, x, y, yaw)

        # Each column of the image is free up to the nearest obstacle, or up to the farthest measurement.
        nearest = torch.where(obstacle, d, CLEAR_RANGE_M).amin(1) - RESOLUTION_M
        farthest = torch.where(measured | (fraction >= 1 - _EDGE), d, 0.0).amax(1)
        free_to = torch.minimum(nearest, farthest)
        # The floor below the image counts as seen only where the image's last row shows floor.
        floor_below = measured[:, -1] & ~obstacle[:, -1]
        free_from = torch.where(floor_below, 0.0, self._floor_from_m)

        ahead, left = self._in_robot_frame(x, y, yaw)
        tangent = left / ahead.clamp(min=1e-3)
        column = (self._column_of_axis - tangent * self._columns_per_tangent + 0.5).floor()
        in_view = (ahead > 0) & (column >= 0) & (column < WIDTH)
        column = column.clamp(0, WIDTH - 1).long().reshape(-1, CELLS * CELLS)
        to = torch.gather(free_to, 1, column).reshape(-1, CELLS, CELLS)
        start = torch.gather(free_from, 1, column).reshape(-1, CELLS, CELLS)
        free = in_view & (ahead < to) & (ahead >= start)

        away = torch.sqrt(ahead * ahead + left * left)
        own = away < self._radius_m - RESOLUTION_M
        rim = (away - self._radius_m - RESOLUTION_M / 2).abs() < RESOLUTION_M
        touched = blocked[:, :, None] & rim & (ahead > 0.7 * away)
        evidence = evidence + HIT * (hit | touched).float() - MISS * (free & ~hit).float()
        return torch.where(own, LEAST, evidence.clamp(LEAST, MOST))

    def _hit(self, d: Tensor, obstacle: Tensor, x: Tensor, y: Tensor, yaw: Tensor) -> Tensor:
        """Mask (B, CELLS, CELLS) of the cells with an obstacle."""
        cos, sin = torch.cos(yaw)[:, :, None], torch.sin(yaw)[:, :, None]
        left = d * self._left
        column = _cell_of(x[:, :, None] + cos * d - sin * left) - _cell_of(x)[:, :, None] + CELLS / 2
        row = _cell_of(y[:, :, None] + sin * d + cos * left) - _cell_of(y)[:, :, None] + CELLS / 2
        seen = obstacle & _inside(row) & _inside(column)
        nowhere = float(CELLS * CELLS)
        index = torch.where(seen, row * CELLS + column, nowhere).long().flatten(1)
        cells = torch.zeros(index.shape[0], CELLS * CELLS + 1, dtype=d.dtype, device=d.device)
        cells = cells.scatter(1, index, 1.0)
        return cells[:, :-1].reshape(-1, CELLS, CELLS) > 0.5

    def _in_robot_frame(self, x: Tensor, y: Tensor, yaw: Tensor) -> tuple[Tensor, Tensor]:
        """Coordinates of each cell's center, ahead and to the left."""
        dx = ((self._cell[None, :] - CELLS / 2 + 0.5 + _cell_of(x)) * RESOLUTION_M - x)[:, None, :]
        dy = ((self._cell[None, :] - CELLS / 2 + 0.5 + _cell_of(y)) * RESOLUTION_M - y)[:, :, None]
        cos, sin = torch.cos(yaw)[:, :, None], torch.sin(yaw)[:, :, None]
        return cos * dx + sin * dy, cos * dy - sin * dx

    def _views(self, evidence: Tensor, x: Tensor, y: Tensor, yaw: Tensor) -> tuple[Tensor, Tensor]:
        blocks = evidence.reshape(-1, COARSE_CELLS, POOL, COARSE_CELLS, POOL)
        most = blocks.amax((2, 4))
        looked_at = (blocks != 0).float().mean((2, 4))
        fine = self._turned(evidence, self._fine_ahead, self._fine_left, x, y, yaw, RESOLUTION_M)
        seen = [
            self._turned(one, self._coarse_ahead, self._coarse_left, x, y, yaw, RESOLUTION_M * POOL)
            for one in (most, looked_at)
        ]
        shape = (-1, COARSE_CELLS, COARSE_CELLS)
        coarse = torch.stack([one.reshape(shape) for one in seen], 1)
        return fine.reshape(-1, FINE_CELLS, FINE_CELLS), coarse

    def _turned(
        self, grid: Tensor, ahead: Tensor, left: Tensor, x: Tensor, y: Tensor, yaw: Tensor, step_m: float
    ) -> Tensor:
        """The cells nearest to points given in the robot's frame; 0 off the grid."""
        cells = grid.shape[-1]
        cos, sin = torch.cos(yaw), torch.sin(yaw)
        corner_x, corner_y = ((_cell_of(one) - CELLS / 2) * RESOLUTION_M - one for one in (x, y))
        column = ((cos * ahead - sin * left - corner_x) / step_m).floor()
        row = ((sin * ahead + cos * left - corner_y) / step_m).floor()
        inside = (row >= 0) & (row < cells) & (column >= 0) & (column < cells)
        index = (row.clamp(0, cells - 1) * cells + column.clamp(0, cells - 1)).long()
        found = torch.gather(grid.reshape(-1, cells * cells), 1, index)
        return torch.where(inside, found, 0.0)


def _cell_of(value_m: Tensor) -> Tensor:
    return torch.floor(value_m / RESOLUTION_M)


def _inside(index: Tensor) -> Tensor:
    return (index >= 0) & (index < CELLS)
