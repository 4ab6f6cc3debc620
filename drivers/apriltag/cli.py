"""``robot-runtime tags``: AprilTags to print, and the survey of their poses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.common.clock import utc_now_iso
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from drivers.apriltag.bundle_adjustment import TagView
    from drivers.apriltag.survey import Survey

SAME_SCALE = 0.03
"""Largest difference of the two path lengths, as a fraction, that is not reported."""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the group."""
    group = typer.Typer(
        help="Print AprilTags, and survey where they hang.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("make")(make)
    group.command("survey")(survey)
    groups["root"].add_typer(group, name="tags")


def make(
    ids: Annotated[str, typer.Option(help="Ids of the family tag36h11: 0-11, or 3,7,20.")] = "0-11",
    tag_m: Annotated[float, typer.Option(help="Edge of the black square. 0.16 fits A4.")] = 0.16,
    out: Annotated[Path, typer.Option(help="PDF to write.", dir_okay=False)] = Path("tags.pdf"),
) -> None:
    """Write tags to print, one per page, in true size, with a ruler to check the printer by.

    Examples:
      robot-runtime tags make --ids 0-23 --out tags.pdf
      robot-runtime tags make --ids 100 --tag-m 0.2 --out robot.pdf
    """
    from drivers.apriltag.print_sheets import (
        write_sheets,
    )  # here, so that the command line does not wait for matplotlib

    numbers = _ids(ids)
    paper = write_sheets(out, numbers, tag_m)
    typer.echo(f"{out}: {len(numbers)} tags of {1000 * tag_m:g} mm on {paper}")
    typer.echo("print at 100 %, measure the ruler of a page, and paste them flat on something stiff")


def survey(
    sources: Annotated[
        list[Path], typer.Argument(help="Logs, or folders of pictures with a frames.yaml.", exists=True)
    ],
    tag_m: Annotated[float, typer.Option(help="Edge of the black square of tags that are not in --surveyed.")],
    out: Annotated[Path, typer.Option(help="Tag map to write.", dir_okay=False)] = Path("tags.yaml"),
    surveyed: Annotated[
        Path | None,
        typer.Option(
            help="Map of separately surveyed tags: one with its complete pose, or positions of several. Default: the "
            "poses that the logs have.",
            exists=True,
        ),
    ] = None,
    mount: Annotated[
        str | None, typer.Option(help="Where the camera sits: preset (launch/mounts) or file. Default: as logged.")
    ] = None,
    decimate: Annotated[float, typer.Option(help="Look for tags in images smaller by this factor.")] = 1.0,
) -> None:
    """Find out where tags hang from the images of logs: drive slowly past all of them, 1 to 3 m away.

    Every fifth image takes no part and says how good the map is.

    Examples:
      robot-runtime tags survey logs/tour --tag-m 0.16 --out scenes/lab/tags.yaml
      robot-runtime tags survey logs/tour --tag-m 0.16 --surveyed door.yaml
    """
    from drivers.apriltag import survey as surveying  # here, so that the command line does not wait for scipy
    from drivers.apriltag.pose import FloorPrior
    from robot_runtime.scenes.tag_map import TagMap, load_tag_map, write_tag_map

    known = {} if surveyed is None else load_tag_map(surveyed).by_id
    views = _read_views(sources, mount, decimate)
    seen = {tag_id for view in views for tag_id in view.rays}
    sizes_m = {tag_id: known[tag_id].size_m if tag_id in known else tag_m for tag_id in seen}
    result = surveying.survey(views, sizes_m, known, FloorPrior())
    facts: dict[str, str | int | float] = {
        "date": utc_now_iso(),
        "sources": ", ".join(map(str, sources)),
        "tied_to": "logged poses" if surveyed is None else str(surveyed),
        "looks": result.views,
        "rms_px": round(result.rms_px, 3),
        "held_out": result.held_out,
    }
    if result.held_out_rms_px is not None:
        facts["held_out_rms_px"] = round(result.held_out_rms_px, 3)
    write_tag_map(out, TagMap(1, "tag36h11", result.tags, facts))
    _print_survey(out, result)


def _read_views(sources: Sequence[Path], mount: str | None, decimate: float) -> list[TagView]:
    """The tags in the images of logs and of folders of pictures. Raises ``RuntimeFault``."""
    from drivers.apriltag.survey_images import FRAMES_FILE, views_from_folder, views_from_log
    from robot_runtime.common import config
    from robot_runtime.imaging.tag_detector import DetectorOptions, TagDetector
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.robots.camera_mount import load_mount

    detector = TagDetector(DetectorOptions(decimate=decimate))
    camera = None if mount is None else load_mount(config.find_preset("mounts", mount))
    views: list[TagView] = []
    runs = 0
    for source in sources:
        if (source / FRAMES_FILE).is_file():
            views.extend(views_from_folder(source, runs, detector))
            runs += 1
            continue
        for path in find_logs([source]):
            views.extend(views_from_log(path, runs, detector, camera))
            runs += 1
    return views


def _print_survey(out: Path, result: Survey) -> None:
    for tag in result.tags:
        place = ", ".join(f"{value:.3f}" for value in tag.xyz_m)
        typer.echo(f"tag {tag.id:3d}  ({place}) m  {tag.looks} images  {tag.rms_px:.2f} px")
    for tag in result.doubtful:
        typer.echo(f"warning: tag {tag.id} fits badly: it moved meanwhile, is bent, or is not {tag.size_m:g} m large")
    if result.path_length_ratio is not None and abs(result.path_length_ratio - 1) > SAME_SCALE:
        typer.echo(
            f"warning: the path by tags is {100 * result.path_length_ratio:.1f} % of odometry's: if that is "
            "calibrated, the tags are not as large as stated"
        )
    held_out = "-" if result.held_out_rms_px is None else f"{result.held_out_rms_px:.2f} px"
    typer.echo(
        f"{out}: {len(result.tags)} tags from {result.views} images, {result.rms_px:.2f} px; held out: {held_out}"
    )


def _ids(text: str) -> list[int]:
    """Parse numbers and ranges of numbers. Raises ``ConfigError``."""
    from robot_runtime.scenes.tag_map import TAG_COUNT

    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.strip().isdigit() or (dash and not last.strip().isdigit()):
            raise ConfigError(f"--ids: {part!r} is neither a number nor a range", "write 0-11, or 3,7,20")
        numbers.extend(range(int(first), int(last if dash else first) + 1))
    beyond = [number for number in numbers if number >= TAG_COUNT]
    if beyond:
        raise ConfigError(f"--ids: there is no tag {beyond[0]}", f"the family tag36h11 has 0 to {TAG_COUNT - 1}")
    return numbers
