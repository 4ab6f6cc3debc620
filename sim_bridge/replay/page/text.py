"""A replay's findings in words, for terminal and page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from robot_runtime.actions.continuous import Decision, VelocityCommand, WaypointCommand
from sim_bridge.replay.camera_offset import CameraOffset, Estimate
from sim_bridge.replay.results import FrameDifference, Note, Replay

PARTS = {
    "scene": "scene",
    "pose": "pose replay",
    "action": "action replay",
    "open": "open loop",
    "closed": "closed loop",
    "policy": "policy",
}

SHOWN_ERRORS = 3.0
"""Of a standard error: an offset of fewer is none."""

LEAST_DEG, LEAST_MM = 0.1, 5.0
"""Smaller offsets of a camera are not worth a word."""


@dataclass(frozen=True)
class Said:
    """One reason, and all that it was a reason for."""

    parts: tuple[str, ...]
    message: str
    remedy: str


def grouped(notes: Sequence[Note]) -> list[Said]:
    """Notes without repetition: a simulator that is not installed is missing for several parts."""
    parts: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        parts.setdefault((note.message, note.remedy), []).append(PARTS.get(note.part, note.part))
    return [Said(tuple(filter(None, names)), *reason) for reason, names in parts.items()]


def action(decision: Decision | None) -> str:
    """An action as people say it."""
    if decision is None:
        return "start"
    if isinstance(decision, VelocityCommand):
        turn = math.degrees(decision.angular_rad_s)
        return f"{decision.linear_m_s:.2f} m/s, {turn:.0f}°/s for {decision.duration_s:g} s"
    if isinstance(decision, WaypointCommand):
        return f"to {decision.x_m:.2f} m, {decision.y_m:.2f} m, {math.degrees(decision.yaw_rad):.0f}°"
    return str(decision).replace("_", " ")


def number(value: float | None, digits: int = 1, unit: str = "") -> str:
    """A value, or a dash where there is none."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    # No minus before what is rounded to nothing.
    return (text.lstrip("-") if float(text) == 0 else text) + unit


def share(value: float | None, digits: int = 1) -> str:
    """A share in per cent."""
    return number(None if value is None else 100 * value, digits, " %")


def frame_sentence(frame: FrameDifference) -> str:
    """One pair of images."""
    depth, color = frame.depth, frame.color
    psnr = "identical" if color.psnr_db is None else f"PSNR {color.psnr_db:.1f} dB"
    seen = (
        f"depth off by {number(depth.median_mm)} mm in the median, {number(depth.p95_mm)} mm at the 95th percentile, "
        f"bias {number(depth.bias_mm)} mm, {share(depth.far_off)} beyond 5 cm"
        if depth.median_mm is not None
        else "no depth to compare"
    )
    return (
        f"{seen} · seen by the twin alone {share(depth.missing_recorded)}, by the recording alone "
        f"{share(depth.missing_twin)} · colour {psnr}, SSIM {color.ssim:.3f}"
    )


def offset_sentence(offset: CameraOffset | None) -> str:
    """Where the camera is, if it is not where the log has it; empty if it is, or if nothing is known."""
    if offset is None:
        return ""
    said = [
        _direction(offset.tilt_deg, "tilted {} up", "tilted {} down", "°"),
        _direction(offset.pan_deg, "turned {} left", "turned {} right", "°"),
        _direction(offset.roll_deg, "rolled {} right", "rolled {} left", "°"),
        _direction(offset.forward_mm, "{} ahead", "{} behind", " mm"),
        _direction(offset.left_mm, "{} to the left", "{} to the right", " mm"),
        _direction(offset.up_mm, "{} higher", "{} lower", " mm"),
    ]
    found = ", ".join(part for part in said if part)
    return f"The camera is not where the log has it: {found}, as {offset.images} depth images show." if found else ""


def _direction(estimate: Estimate | None, positive: str, negative: str, unit: str) -> str:
    if estimate is None or not significant(estimate, LEAST_DEG if unit == "°" else LEAST_MM):
        return ""
    digits = 2 if unit == "°" else 0
    return (positive if estimate.value > 0 else negative).format(f"{abs(estimate.value):.{digits}f}{unit}")


def significant(estimate: Estimate, least: float) -> bool:
    """Whether an offset is one."""
    return abs(estimate.value) > max(least, SHOWN_ERRORS * estimate.error)


def scene_sentence(replay: Replay) -> str:
    """In which scene it was replayed."""
    scene = replay.scene
    if scene.folder is None:
        recorded = f"scene {scene.name}, version {scene.recorded_digest[:12]}"
        # An open loop alone asks for no scene.
        missed = any(note.part == "scene" for note in replay.notes)
        return f"{recorded}, was not found" if missed else f"recorded in {recorded}"
    version = "the recorded version" if scene.same else "another version than was recorded in"
    return f"twin's scene: {scene.folder}, {version}"
