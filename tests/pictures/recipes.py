"""How each picture of the documentation is made: mostly by the commands that its page shows."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.pictures.rooms import apriltag, reconstruction
from tests.pictures.screens import campaign, console, eqa, movie, replay
from tests.pictures.studio import Recipe, Studio, beside, read, scaled, stacked

POLICIES = """
oracle-1     oracle        looks_every=1
oracle-6     oracle        looks_every=6
oracle-10    oracle        looks_every=10
oracle-15    oracle        looks_every=15
oracle-30    oracle        looks_every=30
follower-15  goal-follower off_axis_deg=15
follower-50  goal-follower off_axis_deg=50
bug-right    bug           side=right
bug-left     bug           side=left
"""
"""Those of the tutorial on real episodes, and the four that its figures have besides; every fourth is in short form."""

MOUNTED_TOO_LOW = "camera.mount_error={height_m: -0.27, tilt_deg: -18}"


def demo(studio: Studio) -> None:
    """The first episode of ``make demo``."""
    count = 1 if studio.short else 3
    studio.command("run", "--count", count, "--seed", 6, "--out", "demo")
    studio.command("report", "demo", "--out", "report.html", "--picture", studio.out / "demo.png")


def preflight(studio: Studio) -> None:
    """A camera that is mounted too low and looks too far down, which preflight refuses."""
    picture = studio.out / "preflight.png"
    studio.command("preflight", "--robot-arg", MOUNTED_TOO_LOW, "--picture", picture, codes=(9,))


def noise(studio: Studio) -> None:
    """Noise models of cameras and of actions."""
    studio.command("scene", "noise", "--out", studio.out / "noise-models.png")
    studio.command("scene", "action-noise", "--out", studio.out / "action-noise.png")


def motion(studio: Studio) -> None:
    """One action on five bases."""
    studio.command("motion", "--picture", studio.out / "motion.png", program="tests.benchmarks")


def calibration(studio: Studio) -> None:
    """A board, the cells of the image that have a view, tags from a station, and errors of depth."""
    few = ["--views", 14] if studio.short else []
    for what, given in (("intrinsics", few), ("extrinsics", []), ("depth", [])):
        studio.command("calibrate", what, "--camera", "azure-kinect", "--out", f"{what}.yaml", "--view", what, *given)
    names = ("intrinsics/live.png", "intrinsics/coverage.png", "extrinsics/live.png", "depth/depth.png")
    cells = [scaled(read(studio.folder / name), 560)[:315] for name in names]
    studio.write("calibration.png", stacked([beside(cells[:2], 0), beside(cells[2:], 0)], 0))


def sim_to_real(studio: Studio) -> None:
    """The tutorial on real episodes, with all nine policies."""
    lines = [line.split() for line in POLICIES.strip().splitlines()]
    for name, agent, argument in lines[::4] if studio.short else lines:
        common = shlex.split("--robot synthetic-reality --scene arena --task pointnav_quick")
        given = ["--agent", agent, "--agent-arg", argument, "--name", name, "--count", 2 if studio.short else 10]
        studio.command("run", *common, *given, "--out", f"logs/{name}")
    studio.command("fit", "logs", "--out", "fitted")
    for name in ("fit-actions", "fit-contacts", "fit-likelihood"):
        studio.keep(Path("fitted") / FIGURES[name], f"{name}.png")
    tuned = ["--robot", "sim-sliding", "--vary", "contact.behaviour=slide,stop", "--fitted", "fitted/robot.yaml"]
    studio.command("gap", "tune", "logs", *tuned, "--out", "tuned")
    studio.keep(Path("tuned/tuning.png"), "sim-to-real.png")
    quick = ["--likelihood-only"] if studio.short else []
    grid = [*quick, "--robot", "sim-sliding", "--vary", "contact.behaviour=slide,stop", "--vary", NOISE]
    studio.command(
        "gap", "tune", *(f"logs/{line[0]}" for line in lines[:: 4 if studio.short else 2]), *grid, "--out", "grid"
    )
    studio.keep(Path("grid/tuning.png"), "gap-tune.png")


FIGURES = {"fit-actions": "actions.png", "fit-contacts": "contacts.png", "fit-likelihood": "likelihood.png"}
NOISE = "action_noise=" + ",".join(
    f"{{model: pyrobot, controller: Proportional, multiplier: {factor}}}" for factor in (0.25, 0.5, 1.0)
)

RECIPES = (
    Recipe(("demo.png",), demo),
    Recipe(("first-run.webp",), movie),
    Recipe(("console.png",), console),
    Recipe(("campaign.png",), campaign),
    Recipe(("replay.png",), replay),
    Recipe(("eqa.png",), eqa),
    Recipe(("preflight.png",), preflight),
    Recipe(("noise-models.png", "action-noise.png"), noise),
    Recipe(("motion.png",), motion),
    Recipe(("calibration.png",), calibration),
    Recipe(("apriltag.png",), apriltag),
    Recipe(("reconstruction.png",), reconstruction),
    Recipe((*(f"{name}.png" for name in FIGURES), "sim-to-real.png", "gap-tune.png"), sim_to_real),
)
