"""Sentences and number formats of replays, for terminal and page."""

from collections.abc import Sequence
from dataclasses import dataclass

from robot_runtime.actions.timed import Decision
from robot_runtime.scoring.report.rendering import path_on_page
from sim_bridge.replay.camera_offset import CameraOffset, Estimate
from sim_bridge.replay.results import FAR_SHARE, FarFrames, FrameDifference, Note, Replay

PARTS = {
    "scene": "scene",
    "pose": "pose replay",
    "action": "action replay",
    "open": "open loop",
    "closed": "closed loop",
    "policy": "policy",
}

SIGNIFICANT_ERRORS = 3.0
"""Standard errors that an offset must exceed to be reported."""

LEAST_DEG, LEAST_MM = 0.1, 5.0
"""Smallest offsets of a camera that are reported."""


@dataclass(frozen=True)
class NoteGroup:
    """Notes with one message, and the parts of the replay that they are about."""

    parts: tuple[str, ...]
    message: str
    remedy: str


def group_notes(notes: Sequence[Note]) -> list[NoteGroup]:
    """Notes without repetition: a simulator that is not installed is missing for several parts."""
    parts: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        parts.setdefault((note.message, note.remedy), []).append(PARTS.get(note.part, note.part))
    return [NoteGroup(tuple(filter(None, names)), *reason) for reason, names in parts.items()]


def action(decision: Decision | None) -> str:
    """An action in words."""
    if decision is None:
        return "start"
    return str(decision).replace("_", " ")


def number(value: float | None, digits: int = 1, unit: str = "") -> str:
    """A value, or a dash for None."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    # No minus before what is rounded to zero.
    return (text.lstrip("-") if float(text) == 0 else text) + unit


def scaled(value: float | None, factor: float) -> float | None:
    """A value in another unit; None stays None."""
    return None if value is None else factor * value


def share(value: float | None, digits: int = 1) -> str:
    """A fraction in percent."""
    return number(scaled(value, 100), digits, " %")


def far_sentence(far: FarFrames | None) -> str:
    """The frames that a median does not show."""
    if far is None:
        return "no depth to compare"
    worst = f"the worst {share(far.worst)}, at step {far.worst_index}"
    return f"{far.count} of {far.frames} frames above {share(FAR_SHARE, 0)}, {worst}"


def frame_sentence(frame: FrameDifference) -> str:
    """The differences of a pair of images."""
    depth, color = frame.depth, frame.color
    psnr = "identical" if color.psnr_db is None else f"PSNR {color.psnr_db:.1f} dB"
    errors = (
        f"depth off by {number(depth.median_mm)} mm in the median, {number(depth.p95_mm)} mm at the 95th percentile, "
        f"bias {number(depth.bias_mm)} mm, {share(depth.far_off)} beyond 5 cm"
        if depth.median_mm is not None
        else "no depth to compare"
    )
    return (
        f"{errors} · simulated depth only {share(depth.missing_recorded)}, recorded depth only "
        f"{share(depth.missing_twin)} · color {psnr}, SSIM {color.ssim:.3f}"
    )


def offset_sentence(offset: CameraOffset | None) -> str:
    """The camera's offset from the logged pose; empty if it is unknown or not significant."""
    if offset is None:
        return ""
    components = [
        _direction(offset.tilt_deg, "tilted {} up", "tilted {} down", "°"),
        _direction(offset.pan_deg, "turned {} left", "turned {} right", "°"),
        _direction(offset.roll_deg, "rolled {} right", "rolled {} left", "°"),
        _direction(offset.forward_mm, "{} ahead", "{} behind", " mm"),
        _direction(offset.left_mm, "{} to the left", "{} to the right", " mm"),
        _direction(offset.up_mm, "{} higher", "{} lower", " mm"),
    ]
    parts = ", ".join(filter(None, components))
    return f"The camera is not where the log has it: {parts}, as {offset.images} depth images show." if parts else ""


def _direction(estimate: Estimate | None, positive: str, negative: str, unit: str) -> str:
    least, digits = (LEAST_DEG, 2) if unit == "°" else (LEAST_MM, 0)
    if estimate is None or abs(estimate.value) <= max(least, SIGNIFICANT_ERRORS * estimate.error):
        return ""
    return (positive if estimate.value > 0 else negative).format(f"{abs(estimate.value):.{digits}f}{unit}")


def scene_sentence(replay: Replay) -> str:
    """The scene that the log was replayed in."""
    scene = replay.scene
    if scene.folder is None:
        recorded = f"scene {scene.name}, version {scene.recorded_digest[:12]}"
        # The open loop alone needs no scene.
        missed = any(note.part == "scene" for note in replay.notes)
        return f"{recorded}, was not found" if missed else f"recorded in {recorded}"
    version = "the recorded version" if scene.same else "another version than was recorded in"
    return f"simulated scene: {path_on_page(scene.folder)}, {version}"
