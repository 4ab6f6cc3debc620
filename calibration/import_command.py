"""``robot-runtime calibrate import``: calibrations and tag maps of other programs."""

import re
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.errors import ConfigError, writing

VALID_DAYS = 365.0
"""Days for which an imported calibration is valid; its own age is unknown."""


def import_file(
    file: Annotated[Path, typer.Argument(help="ROS, Kalibr, OpenCV, RealSense, Azure Kinect or apriltag_ros file.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="YAML file to write; it must not exist.")],
    robot: Annotated[str, typer.Option(help="Name of the robot that the camera is on, as in its YAML.")] = "",
    serial: Annotated[str, typer.Option(help="Serial number of the device, if the driver knows one.")] = "",
    size: Annotated[str | None, typer.Option(metavar="WIDTHxHEIGHT", help="Image size that the file lacks.")] = None,
    at: Annotated[str, typer.Option(metavar="X,Y,Z,YAW_DEG", help="Pose of a tag bundle in map, meters.")] = "0,0,0,0",
) -> None:
    """Convert another program's calibration or tag map; name what has no equal.

    Name a calibration as 'calibration' under 'imaging' in the camera's YAML; `preflight` verifies it as any other.

    Examples:
        robot-runtime calibrate import head_camera.yaml --robot lab-1 --out lens.yaml
        robot-runtime calibrate import tags.yaml --at 3.0,1.5,1.0,180 --out my_flat/tags.yaml
    """
    from dataclasses import replace

    from calibration import foreign
    from robot_runtime.common.console import console
    from robot_runtime.robots.calibration_file import Stamp, write_calibration
    from robot_runtime.scenes.tag_map import write_tag_map

    if out.exists():
        raise ConfigError(f"{out}: exists", "give another file with --out, or remove it")
    if foreign.is_tag_file(file):
        tags, left_out = foreign.read_tags(file, foreign.planar(*_numbers(at)))
        with writing(out):
            write_tag_map(out, tags)
        console.print(f"{out}: {len(tags.tags)} tags of family tag36h11, the bundle at {at}", soft_wrap=True)
        for sentence in left_out:
            console.print(f"left out: {sentence}", soft_wrap=True, markup=False)
        return
    if not robot:
        raise ConfigError("a calibration belongs to a robot", "add --robot NAME, as in the robot's YAML")
    rig, kind = foreign.read_rig(file, _size(size))
    rig = replace(rig, serial=serial or rig.serial)
    stamp = Stamp.now("intrinsics", robot, rig.serial, VALID_DAYS, f"imported from {kind}: {file.name}", {}, {})
    with writing(out):
        write_calibration(out, stamp, rig.to_document())
    lens = rig.color
    console.print(
        f"{out}: {kind}, {lens.width}x{lens.height}, {lens.model}, fx {lens.fx:.2f} px. Check it: "
        "`robot-runtime preflight`",
        soft_wrap=True,
    )


def _numbers(text: str) -> tuple[float, float, float, float]:
    try:
        x_m, y_m, z_m, yaw_deg = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--at {text}: is not X,Y,Z,YAW_DEG", "write four numbers: --at 3.0,1.5,1.0,180") from None
    return x_m, y_m, z_m, yaw_deg


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,5}x[0-9]{1,5}", text):
        raise ConfigError(f"--size {text}: is not WIDTHxHEIGHT", "write for example --size 1280x720")
    width, height = map(int, text.split("x"))
    return width, height
