"""Output files of a fit: ``actuation.yaml``, ``motors.yaml``, ``robot.yaml``, ``fit.json``."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibration.fitting import table
from calibration.fitting.fit import RobotFit
from calibration.fitting.plots import write_plots
from calibration.fitting.simulator_options import Setting, options
from calibration.motion.action_errors import deviations
from calibration.motion.motors import calibration_of
from robot_runtime.common import config
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.errors import writing
from robot_runtime.motion.identification import MotorFit
from robot_runtime.recording.json_output import plain
from robot_runtime.robots.action_errors import KIND
from robot_runtime.robots.calibration_file import MOTORS, Stamp, write_calibration
from robot_runtime.scoring.report.rendering import render

DRIVER = "sim_bridge.robot.driver.make_robot"


def write_fit(folder: Path, fit: RobotFit, settings: list[Setting], valid_days: float) -> None:
    """Write the files. Raises ``RecordingError`` if they cannot be written."""
    with writing(folder, "give another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        write_calibration(folder / "actuation.yaml", stamp(fit, valid_days), config.unparse(fit.model))
        if (motors := fit.motors.fit) is not None:
            write_calibration(folder / "motors.yaml", _motor_stamp(fit, motors, valid_days), _motors(motors))
        robot = {
            "name": f"{fit.robot.partition('@')[0]}-fitted{'-replays' * bool(fit.replayed)}",
            "driver": DRIVER,
            "options": options(settings),
        }
        head = f"# Fitted to the logs of {fit.robot!r} by `robot-runtime fit`; what each option is worth: fit.json\n"
        body = dump_yaml(plain(robot), default_flow_style=None, width=120)
        (folder / "robot.yaml").write_text(head + body, encoding="utf-8")
        document = json.dumps(plain(as_document(fit, settings)), indent=2, allow_nan=False)
        (folder / "fit.json").write_text(document + "\n", encoding="utf-8")


def _motors(motors: MotorFit) -> dict[str, Any]:
    return dict(config.unparse(calibration_of(motors)))


def _motor_stamp(fit: RobotFit, motors: MotorFit, valid_days: float) -> Stamp:
    residuals = {"rms_mm": 1000 * motors.error_m}
    method = f"{fit.motors.actions} logged actions"
    return Stamp.now(MOTORS, fit.robot.partition("@")[0], "", valid_days, method, residuals, {})


def stamp(fit: RobotFit, valid_days: float) -> Stamp:
    """Return the stamp of the actuation file."""
    residuals: dict[str, float] = {}
    for name, action in fit.actions.items():
        residuals |= deviations(name, action.error)
    held_out = {}
    if fit.validation.nats is not None:
        held_out["nats_per_action"] = fit.validation.nats
        held_out["gain_over_best_published_nats"] = fit.validation.rivals[0].gain.mean
    size, referee = fit.selection.size, " and ".join(fit.header.localizers.get("referee", ())) or "unnamed"
    method = (
        f"{len(fit.selection.samples)} actions of {size.forward_m:g} m and {size.turn_deg:g}° in "
        f"{len(fit.episodes)} logged episodes, referee {referee}"
    )
    return Stamp.now(KIND, fit.robot.partition("@")[0], "", valid_days, method, residuals, held_out)


def as_document(fit: RobotFit, settings: list[Setting]) -> dict[str, Any]:
    """Return the complete fit as a JSON document."""
    return {
        "robot": fit.robot,
        "logs": [str(episode.path) for episode in fit.episodes],
        "unused": [{"log": str(path), "reason": reason} for path, reason in fit.unused],
        "truncated": list(fit.truncated),
        "continuous_commands": fit.continuous,
        "size": plain(fit.selection.size),
        "left_out": fit.selection.left_out,
        "actions": plain(fit.actions),
        "slips": plain(fit.slips),
        "correlation_of_consecutive_errors": {
            "pairs": fit.correlated,
            **{k: v if v == v else None for k, v in zip(("x", "y", "yaw"), fit.correlation, strict=True)},
        },
        "contact": {
            **plain(replace(fit.contact, contacts=())),
            "contacts": len(fit.contact.contacts),
            "telling": fit.contact.telling,
        },
        "camera": plain(fit.camera),
        "replayed_camera": plain(fit.replayed and replace(fit.replayed, offsets=())),
        "replays": fit.replays,
        "depth": plain(fit.depth),
        "latency": plain(fit.latency),
        "motors": None if fit.motors.fit is None else _motors(fit.motors.fit),
        "held_out": plain(fit.validation),
        "misfits": [{**plain(misfit), "text": str(misfit)} for misfit in fit.misfits],
        "settings": [plain(setting) for setting in settings],
    }


# --- page -----------------------------------------------------------------------------------------------------------


def write_page(folder: Path, fit: RobotFit, settings: list[Setting]) -> None:
    """Write ``fit.html`` and its figures as PNG. Raises ``RecordingError`` if they cannot be written."""
    with writing(folder, "give another --out"):
        pictures = [
            (caption, base64.b64encode((folder / name).read_bytes()).decode())
            for name, caption in write_plots(folder, fit)
        ]
        page = render(
            "fit.html",
            "calibration.fitting",
            fit=fit,
            settings=settings,
            says=table.says,
            rows=table.rows(fit),
            notes=table.notes(fit),
            pictures=pictures,
        )
        (folder / "fit.html").write_text(page, encoding="utf-8")
