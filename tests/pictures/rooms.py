"""Pictures of rooms that no command writes: tags as two cameras see them, and a room made of logs."""

from __future__ import annotations

import base64
import math

import cv2
import numpy as np
import yaml

import robot_runtime as rr
from drivers.apriltag.emulator import EmulatedImageSource
from drivers.apriltag.static_camera import StaticCameraOptions
from robot_runtime.common.geometry import SE2
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import CameraMotion
from robot_runtime.imaging.tag_detector import TagDetector
from robot_runtime.robots.loader import DeviceOverrides
from tests.pictures.studio import ROOT, Image, Studio, beside, read, scaled, stacked
from tests.support.changed_room import rearranged

MOVED = {"chair_2": SE2(-0.5, -1.2, 1.0), "table_1": SE2(0.0, 0.25, 0.0), "stool_1": SE2(0.35, 0.05, 0.0)}


def apriltag(studio: Studio) -> None:
    """The tags that the robot sees, and the tag on the robot that a camera under the ceiling sees."""
    task, scene = rr.load_task("pointnav_gps_compass"), rr.load_scene("apartment")
    episode = rr.generate_episodes(scene, task, count=1, seed=35)[0]
    context = rr.RobotContext.of(task, scene, [episode], seed=35)
    options = yaml.safe_load((ROOT / "launch" / "localizers" / "static-camera.yaml").read_text(encoding="utf-8"))
    ceiling = StaticCameraOptions(**{**options["options"], "lens": Lens(**options["options"]["lens"])})
    with rr.load_robot("sim-tags", context, DeviceOverrides(camera="azure-kinect")) as robot:
        simulation = robot.simulation
        assert simulation is not None
        robot.placer.place(SE2(6.55, 1.45, math.radians(35)), 0.0)
        known = robot.camera.info.intrinsics
        lens = Lens(known.width, known.height, known.fx, known.fy, known.cx, known.cy)
        views: list[Image] = []
        for seen_by, pose, motion in (
            (lens, simulation.camera_pose, simulation.camera_motion),
            (ceiling.lens, lambda: ceiling.map_from_camera, CameraMotion),
        ):
            noise = simulation.color_noise({"model": "sensor"}, "the picture")
            source = EmulatedImageSource("picture", simulation, seen_by, 1.0, noise, pose, motion)
            source.open(lambda _stamp_ns, image: views.append(image))
            source.capture(robot.clock.now_ns(), 5.0)
            source.close()
    own, above = (_with_tags(image) for image in (views[0], views[-1]))
    own = scaled(own, round(own.shape[1] * 480 / own.shape[0]))
    studio.write("apriltag.png", beside([own, above]))


def _with_tags(image: Image) -> Image:
    """The image with its tags framed and numbered."""
    drawn = np.ascontiguousarray(image)
    thick = max(2, image.shape[0] // 300)
    for tag in TagDetector().detect(image):
        cv2.polylines(drawn, [np.rint(tag.corners_px).astype(np.int32)], True, (60, 220, 60), thick)
        x, y = np.rint(tag.corners_px.max(axis=0)).astype(int).tolist()
        cv2.putText(drawn, str(tag.id), (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.25 * thick, (210, 20, 40), thick)
    return drawn


def reconstruction(studio: Studio) -> None:
    """A robot's view and the same one in a room made of other logs; the changes that a later log shows."""
    count = 1 if studio.short else 4
    common = ["run", "--agent", "classical"]
    studio.command(*common, "--count", count, "--out", "walk")
    studio.command("scene", "from-log", "walk", "--out", "lab", "--no-view-points")
    studio.command(*common, "--count", 1, "--seed", 3, "--out", "other")
    options = ["--poses", "--scene", "lab", "--any-scene-version", "--out", "replays"]
    studio.command("replay", "other", *options)
    page = next(path for path in (studio.folder / "replays").glob("*.html") if path.name != "index.html")
    studio.shown(page, 1280, 900, "document.getElementById('play').click()")
    step = "(n) => { const s = document.getElementById('step'); s.value = n; s.dispatchEvent(new Event('input')); }"
    studio.tab.run(f"document.getElementById('play').click(); ({step})(12)")
    views = []
    for name, title in (("recorded", "What a robot saw"), ("simulated", "The same view in a scene made of other logs")):
        uri = studio.tab.run(f"document.getElementById('{name}').src")
        path = studio.folder / f"{name}.jpg"
        path.write_bytes(base64.b64decode(uri.partition(",")[2]))
        views.append(_titled(scaled(read(path), 490), title))
    rearranged(rr.load_scene("apartment"), studio.folder / "moved", MOVED)
    # An episode whose start the moved things touch is left out.
    walks = ["--agent", "oracle", "--keep-going"]
    walks += ["--count", "1", "--task", "pointnav_quick"] if studio.short else ["--count", "4"]
    studio.command("run", *walks, "--scene", "moved", "--out", "later", codes=(0, 5))
    studio.command("scene", "diff", "apartment", "later", "--picture", "changes.png", codes=(0, 1, 10))
    changes = _titled(scaled(read(studio.folder / "changes.png"), 988), "What has changed since the scene was made")
    studio.write("reconstruction.png", stacked([beside(views), changes]))


def _titled(image: Image, title: str) -> Image:
    """The picture below a line of text."""
    head = np.full((30, image.shape[1], 3), 255, np.uint8)
    cv2.putText(head, title, (2, 21), cv2.FONT_HERSHEY_SIMPLEX, 0.55, (20, 20, 20), 1, cv2.LINE_AA)
    return np.concatenate([head, image])
