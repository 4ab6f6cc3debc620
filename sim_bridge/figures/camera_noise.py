"""A figure of the cameras' noise models: noisy views, and errors over the distance."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from robot_runtime.common.creating import creating
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Intrinsics, Lens
from robot_runtime.hal.simulation import CameraMotion, DepthNoise, Simulation
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.scene import Scene
from sim_bridge.noise.azure_kinect import AzureKinectOptions
from sim_bridge.noise.color import FAR_M, flow, moved
from sim_bridge.noise.models import color_noise, depth_noise
from sim_bridge.noise.surface import pixel_rays

KINECT = Lens(640, 576, 504.6, 504.6, 319.5, 331.5, "rational", (0.3, 0.0, 0.0, 0.0, 0.0, 0.6333, 0.0388, 0.0), 1.74)
PINHOLE = Lens.of(Intrinsics.from_hfov(640, 480, 79.0))
STEREO = Lens.of(Intrinsics.from_hfov(848, 480, 87.0))

LENSES = {"azure_kinect": KINECT, "redwood": PINHOLE, "d435": STEREO}
TITLES = {"azure_kinect": "Azure Kinect, narrow", "redwood": "Redwood (Habitat challenge)", "d435": "RealSense D435"}

TURNING = CameraMotion((-0.05, 0.0, 0.3), (0.0, -1.5, 0.0))
DISTANCES_M = np.arange(0.5, 5.01, 0.25)
ERROR_MM = 40.0


def draw(path: Path, scene: Scene, seed: int) -> None:
    """Write the picture (PNG): views of the scene from its most open place. Raises ``RenderingUnavailable``."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from PIL import Image

    from sim_bridge.robot.driver import make_robot

    robot = make_robot(RobotContext(scene, None, seed), "noise", {}, "noise")
    simulation = robot.simulation
    assert simulation is not None
    random = np.random.default_rng(seed)
    figure, axes = plt.subplots(3, 3, figsize=(13, 10), dpi=80, layout="constrained")
    with robot:
        robot.placer.place(_lookout(scene), math.radians(-12))
        for axis, name in zip(axes[0], LENSES, strict=True):
            shown = _draw_errors(axis, simulation, name, random)
        _draw_color(axes[2], simulation, random)
    figure.colorbar(shown, ax=axes[0], label="error of depth, mm; gray: not measured", shrink=0.9)
    _draw_spread(axes[1, 0], random)
    _draw_bias(axes[1, 1], random)
    _draw_corner(axes[1, 2], random)
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    plt.close(figure)
    # 256 colors are enough and take a third of the space.
    with creating(path) as draft:
        Image.fromarray(np.ascontiguousarray(drawn)).quantize(256).save(draft)


def _lookout(scene: Scene) -> SE2:
    """The most open navigable cell, with a heading along the longest free line."""
    clearance_m = scene.map.clearance_m()
    row, column = np.unravel_index(int(np.argmax(clearance_m)), clearance_m.shape)
    x_m, y_m = scene.map.to_point(int(row), int(column))

    def free_m(yaw_rad: float) -> float:
        distance_m = 0.0
        while distance_m < 10:
            at = scene.map.to_cell(x_m + distance_m * math.cos(yaw_rad), y_m + distance_m * math.sin(yaw_rad))
            if clearance_m[at] < 0.1:
                break
            distance_m += 0.05
        return distance_m

    return SE2(x_m, y_m, max(np.linspace(-math.pi, math.pi, 72).tolist(), key=free_m))


def _model(name: str, **options: object) -> DepthNoise:
    return depth_noise({"model": name, **options}, "noise")


def _draw_errors(axis: Any, simulation: Simulation, name: str, random: np.random.Generator) -> Any:
    lens = LENSES[name]
    true_m = simulation.render_depth(lens, simulation.camera_pose())
    measured_m = _model(name).measure(true_m, lens, random)
    error_mm = np.where(measured_m > 0, 1000 * (measured_m - true_m), np.nan)
    axis.set_facecolor("0.6")
    axis.set_title(TITLES[name])
    axis.set_xticks([])
    axis.set_yticks([])
    return axis.imshow(error_mm, cmap="RdBu", vmin=-ERROR_MM, vmax=ERROR_MM, interpolation="nearest")


def _draw_spread(axis: Any, random: np.random.Generator) -> None:
    for name in LENSES:
        axis.plot(DISTANCES_M, [_middle_mm(name, far_m, random)[1] for far_m in DISTANCES_M], label=TITLES[name])
    axis.axhline(17, color="0.5", linestyle=":", label="Azure Kinect's data sheet, at most")
    axis.set(title="axial noise of a wall", xlabel="distance, m", ylabel="standard deviation, mm", yscale="log")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)


def _draw_bias(axis: Any, random: np.random.Generator) -> None:
    far_m = np.arange(0.5, 4.0, 0.03)
    axis.plot(far_m, [_middle_mm("azure_kinect", at_m, random)[0] for at_m in far_m], label="simulated")
    axis.plot(far_m, 11 + far_m, color="0.5", linestyle=":", label="data sheet, at most")
    axis.set(title="Azure Kinect: mean error of a wall", xlabel="distance, m", ylabel="mm", ylim=(0, 16))
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)


def _middle_mm(name: str, far_m: float, random: np.random.Generator) -> tuple[float, float]:
    """Mean and standard deviation of the error in the middle of the image of a wall."""
    lens = LENSES[name]
    size = 80
    small = Lens(size, size, lens.fx, lens.fy, (size - 1) / 2, (size - 1) / 2)
    wall = np.full((size, size), far_m, np.float32)
    options: dict[str, object] = {"mask": "none"} if name == "azure_kinect" else {}
    measured_m = _model(name, **options).measure(wall, small, random)[20:60, 20:60]
    error_mm = 1000 * (measured_m[measured_m > 0] - far_m)
    return float(error_mm.mean()), float(error_mm.std())


def _draw_corner(axis: Any, random: np.random.Generator) -> None:
    """Draw a horizontal section of a corner of two walls at right angles, 2 m away."""
    rays = pixel_rays(PINHOLE)
    with np.errstate(divide="ignore", invalid="ignore"):
        true_m = (2.0 / (1 + np.abs(rays[..., 0]))).astype(np.float32)
    row = PINHOLE.height // 2
    for label, multipath, color in (("one bounce", AzureKinectOptions().multipath, "C3"), ("without", 0.0, "C0")):
        model = _model("azure_kinect", mask="none", multipath=multipath, axial_m=0, axial_growth=0, lateral_px=0)
        measured_m = model.measure(true_m, PINHOLE, random)[row - 2 : row + 3].mean(axis=0)
        axis.plot(2.0 * rays[row, :, 0], 1000 * (measured_m - true_m[row]), label=f"Azure Kinect, {label}", color=color)
    axis.set(title="multipath in a corner 2 m away", xlabel="to the side, m", ylabel="error, mm", xlim=(-1.5, 1.5))
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)


def _draw_color(axes: Any, simulation: Simulation, random: np.random.Generator) -> None:
    rgb, depth_m = simulation.render(PINHOLE, simulation.camera_pose())
    still = CameraMotion()
    sensor, gaussian = ({"model": name} for name in ("sensor", "gaussian"))
    dim = (rgb // 3).astype(np.uint8)
    lit = color_noise(sensor, "noise").expose(dim, depth_m, PINHOLE, still, random)
    axes[0].set_title("sensor, in a third of the light")
    axes[0].imshow(np.clip(3 * lit.astype(np.int32), 0, 255).astype(np.uint8))
    axes[1].set_title("gaussian, 0.1 (Habitat challenge)")
    axes[1].imshow(color_noise(gaussian, "noise").expose(rgb, depth_m, PINHOLE, still, random))
    speed = flow(PINHOLE, np.where(depth_m > 0, depth_m, FAR_M).astype(depth_m.dtype), TURNING)
    axes[2].set_title("86 deg/s to the left, 30 ms + 30 ms")
    axes[2].imshow(moved(rgb, speed, 0.03, 0.03))
    for axis in axes:
        axis.set_xticks([])
        axis.set_yticks([])
