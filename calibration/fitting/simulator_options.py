"""Options of a simulated robot from a fit: the list behind the robot's file, the table and the page."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from calibration.fitting.actions import model_of
from calibration.fitting.fit import RobotFit
from calibration.fitting.motors import MotorsOfLogs
from calibration.motion.motors import calibration_of
from robot_runtime.common import config
from robot_runtime.scoring.statistics.intervals import Interval

MAX_TILT_DEG = 0.5
"""Greatest half interval of the camera's angle that is set."""

MAX_AWAY_M = 0.02
"""Greatest half interval of the camera's position that is set."""

MIN_MOTOR_DELAY_S, MIN_THRESHOLD_M_S = 0.01, 0.01
"""Dead time and lag, and threshold, below which motors are ideal, as the simulated ones are by default."""

MIN_GAIN_ERROR = 0.005
"""Deviation of a gain from 1 below which motors are ideal."""

MIN_NOISE_M, MIN_NOISE_DEG, MIN_SET_LATENCY_S = 1e-4, 0.01, 0.001
"""Noise and latency below which a localizer is exact, as the simulated one is by default."""


@dataclass(frozen=True)
class Setting:
    """One option.

    Attributes:
        name: name in tables.
        found: result as text, with its interval.
        option: dotted path under ``options``; empty without an option.
        value: value of the option; None to keep the default.
        note: why the default is kept.
    """

    name: str
    found: str
    option: str = ""
    value: Any = None
    note: str = ""


def settings(fit: RobotFit) -> list[Setting]:
    """Return all results of a fit with their options."""
    return [*_actions(fit), *_contact(fit), *_camera(fit), *_depth(fit), *_latency(fit), *motor_settings(fit.motors)]


def options(settings: list[Setting]) -> dict[str, Any]:
    """Return the options of a simulated robot."""
    nested: dict[str, Any] = {}
    for setting in settings:
        if setting.option and setting.value is not None:
            *path, last = setting.option.split(".")
            into = nested
            for name in path:
                into = into.setdefault(name, {})
            into[last] = setting.value
    return nested


def text(interval: Interval, unit: str = "", digits: int = 2, scale: float = 1.0) -> str:
    """Return a value with its interval as text."""
    mean, low, high = (f"{scale * value:.{digits}f}" for value in (interval.mean, interval.low, interval.high))
    return f"{mean} [{low}, {high}] {unit}".rstrip()


def _actions(fit: RobotFit) -> Iterator[Setting]:
    with_motors = motor_options(fit.motors) is not None
    # With motors of its own, the simulated robot has their part of the errors already.
    document = config.unparse(model_of(fit.selection, fit.slips) if with_motors else fit.model)
    document.pop("contact", None)
    # The content is copied, because the calibration's file may be moved.
    value = {"model": "gaussian", **document}
    count = sum(action.error.count for action in fit.actions.values())
    found = f"{count} actions" + (", less what odometry measured" if with_motors else "")
    yield Setting("errors of actions", found, "action_noise", value)


def _contact(fit: RobotFit) -> Iterator[Setting]:
    contact = fit.contact
    if contact.behaviour is None:
        yield Setting("at a wall", "not known", "contact.behaviour", None, contact.reason)
    else:
        of = f"{contact.telling} of {len(contact.contacts)} contacts"
        ratio = f"log likelihood {contact.log_ratio:+.0f} for sliding by {of}"
        yield Setting("at a wall", f"{contact.behaviour}s: {ratio}", "contact.behaviour", contact.behaviour)
    if contact.travel_m is not None:
        yield Setting("travel after touch", text(contact.travel_m, "mm", 1, 1e3))
    if contact.radius_m is None:
        yield Setting("radius at contact", "not known", "body.radius_m", None, "too few contacts ended at a wall")
        return
    radius_m, described_m = contact.radius_m, fit.header.task.robot_radius_m
    beyond = not radius_m.low <= described_m <= radius_m.high
    note = "" if beyond else f"{described_m:g} m as described, within the map's cells"
    yield Setting("radius at contact", text(radius_m, "m", 3), "body.radius_m", radius_m.mean if beyond else None, note)


def _camera(fit: RobotFit) -> Iterator[Setting]:
    camera = fit.camera
    forward_m = fit.header.mount[0]
    if camera.mount is not None:
        yield Setting("camera's mount", f"{camera.mount}, as described", "camera.mount", camera.mount)
    elif forward_m:
        yield Setting("camera ahead of the axis", f"{forward_m:.3f} m, as logged", "camera.forward_m", forward_m)
    for option in ("tilt_deg", "roll_deg", "pan_deg", "height_m", "forward_m"):
        yield _mount_error(fit, option)


def _mount_error(fit: RobotFit, option: str) -> Setting:
    """Return one option of the mount's error: by replays if known, else by the floor."""
    name, place = f"camera's {option.partition('_')[0]}", f"camera.mount_error.{option}"
    by_replays: Interval | None = getattr(fit.replayed, option, None)
    by_floor: Interval | None = getattr(fit.camera, option, None)
    interval = by_replays or by_floor
    if by_replays is not None and by_floor is not None:  # what two ways differ by is an error of either
        mean, apart = by_replays.mean, abs(by_replays.mean - by_floor.mean)
        interval = Interval(mean, min(by_replays.low, mean - apart), max(by_replays.high, mean + apart))
    if interval is None:
        walls = "" if hasattr(fit.camera, option) else "not identified: the floor does not determine it: give --replay"
        return Setting(name, "not known", place, None, walls or fit.camera.reason)
    meters = option.endswith("_m")
    shown = text(interval, "mm", 1, 1e3) if meters else text(interval, "°")
    if by_replays is not None and fit.replayed is not None:
        shown += f", {fit.replayed.replays} replays"
    if (interval.high - interval.low) / 2 > (MAX_AWAY_M if meters else MAX_TILT_DEG):
        return Setting(name, shown, place, None, "not identified: too unsure to be set")
    return Setting(name, shown, place, round(interval.mean, 5))


def _depth(fit: RobotFit) -> Iterator[Setting]:
    depth = fit.depth
    if fit.header.depth_unit_m:
        unit = f"{1e3 * fit.header.depth_unit_m:g} mm, as logged"
        yield Setting("depth unit", unit, "camera.depth_unit_m", fit.header.depth_unit_m)
    value: dict[str, Any] = {}
    if depth.sigma is None:
        shown, note = "not known", depth.reason
    elif not any(each.sigma_m or each.holes for each in depth.bins):
        shown, note = f"none in {depth.pairs} pairs of frames", "as a simulated one by itself"
    else:
        shown, note = f"{_polynomial(depth.sigma)}, {depth.pairs} pairs of frames", ""
        value = {
            "sigma": [float(f"{each:.4g}") for each in depth.sigma],
            "window_px": depth.window_px,
            "holes": [[round(each.depth_m, 3), round(each.holes, 5)] for each in depth.bins],
            "edge_gain": round(depth.edge_gain, 2),
            "edge_holes": round(depth.edge_holes, 4),
        }
    if fit.replayed is not None and any(depth.bias):
        value["bias"] = [float(f"{each:.4g}") for each in depth.bias]
        told = f"{_polynomial(depth.bias)}, seen as far as {fit.replayed.farthest_m:.1f} m"
        yield Setting("bias of depth", told, "", None, "part of its noise")
    yield Setting("noise of depth", shown, "camera.depth_noise", {"model": "fitted", **value} if value else None, note)


def _polynomial(coefficients: tuple[float, float, float]) -> str:
    c0, c1, c2 = (1e3 * value for value in coefficients)
    return f"{c0:.1f} {c1:+.1f} z {c2:+.1f} z² mm".replace("+", "+ ").replace(" -", " - ")


def _latency(fit: RobotFit) -> Iterator[Setting]:
    latency = fit.latency
    if latency.camera_s is not None:
        found_s = latency.camera_s
        yield Setting("camera's latency", text(found_s, "ms", 0, 1e3), "camera.latency_s", round(found_s.mean, 4))
    elif latency.camera_at_most_s is not None:
        shown, note = f"at most {1e3 * latency.camera_at_most_s:.0f} ms", "observations waited for poses, not for it"
        if latency.camera_at_most_s < MIN_SET_LATENCY_S:
            shown, note = "none", "as a simulated one by itself"
        yield Setting("camera's latency", shown, "camera.latency_s", None, note)
    if latency.look_s is not None:
        yield Setting("a look takes", text(latency.look_s, "s"))
    for role, source in latency.sources.items():
        late = "" if source.latency_s is None else f", late by {text(source.latency_s, 'ms', 0, 1e3)}"
        noise = "" if source.noise_m is None else f", noise {1e3 * source.noise_m:.1f} mm {source.noise_deg or 0:.2f}°"
        name = {"policy": "policy's localizer", "referee": "referee", "odometry": "odometry"}[role]
        shown = f"{source.name}, {source.rate_hz:.1f} Hz{late}{noise}"
        if source.lost >= 0.005:
            shown += f", {100 * source.lost:.0f} % lost"
        if role != "policy":
            yield Setting(name, shown)
            continue
        value = _localizer(fit)
        yield Setting(name, shown, "localizer", value, "" if value else "exact, as a simulated one by itself")
        if source.stamps_late_s is not None:
            yield Setting("its stamps by odometry", f"late by {text(source.stamps_late_s, 'ms', 1, 1e3)}")
    if "policy" not in latency.sources:
        yield Setting("policy's localizer", "several sources", "localizer", None, "fused ones have no one latency")


def motor_settings(motors: MotorsOfLogs) -> Iterator[Setting]:
    """Yield the motors' values and, as one option, what a simulated robot takes of them."""
    fit = motors.fit
    if fit is None:
        yield Setting("motors", "not known", "motors", None, motors.reason)
        return

    def shown(name: str, scale: float, digits: int) -> str:
        low, high = fit.interval(name)
        return text(Interval((low + high) / 2, low, high), "", digits, scale)

    yield Setting("motors' dead time", f"{shown('dead_time_s', 1e3, 0)} ms, {motors.actions} actions")
    yield Setting("motors' lag", f"{shown('lag_s', 1e3, 0)} ms")
    for side in ("left", "right"):
        gain, threshold = shown(f"gain_{side}", 1.0, 3), shown(f"threshold_{side}_m_s", 1e3, 0)
        yield Setting(f"{side} wheel", f"gain {gain}, starts at {threshold} mm/s")
    value = motor_options(motors)
    note = "" if value else "no delay, as a simulated one by itself"
    yield Setting("motors", "from the rows above", "motors", value, note)


def motor_options(motors: MotorsOfLogs) -> dict[str, Any] | None:
    """Return the options of motors; None for ideal and for unknown ones."""
    fit = motors.fit
    if fit is None:
        return None
    model = fit.model
    timely = max(model.dead_time_s, model.lag_s) < MIN_MOTOR_DELAY_S and max(model.threshold_m_s) < MIN_THRESHOLD_M_S
    if timely and max(abs(gain - 1) for gain in model.gain) < MIN_GAIN_ERROR:
        return None
    value: dict[str, Any] = {"type": "kobuki"}  # what the controller assumes of it; all else is overridden
    for name in ("dead_time_s", "lag_s", "gain", "threshold_m_s"):
        value[name] = getattr(calibration_of(fit).model, name)
    if model.accel_m_s2 is not None:
        value["accel_m_s2"] = round(model.accel_m_s2, 4)
    return value


def _localizer(fit: RobotFit) -> dict[str, Any] | None:
    """Return the options of the policy's localizer; None for one without errors."""
    source = fit.latency.sources["policy"]
    odometry = fit.latency.sources.get("odometry")
    if odometry is not None and odometry.name == source.name:
        return {"source": "odometry", "rate_hz": round(source.rate_hz, 2)}
    latency_s = 0.0 if source.latency_s is None else source.latency_s.mean
    noise_m, noise_deg = source.noise_m or 0.0, source.noise_deg or 0.0
    if latency_s < MIN_SET_LATENCY_S and noise_m < MIN_NOISE_M and noise_deg < MIN_NOISE_DEG:
        return None
    return {
        "rate_hz": round(source.rate_hz, 2),
        "latency_s": round(latency_s, 4),
        "noise_m": round(noise_m, 5),
        "noise_deg": round(noise_deg, 4),
        "dropout_probability": round(source.lost, 4),
    }
