"""Physical ranges of numbers with units, for all files, options and messages: the one place for them.

A field's name ends with its unit (``_m``, ``_deg``, ``_s``), which gives it the widest range of that unit on an indoor
robot (:data:`BY_SUFFIX`). A field of a narrower quantity is declared with a type of this module::

    @dataclass(frozen=True)
    class MyOptions:
        latency_s: Latency = 0.0
        lever_m: tuple[PartOffset, PartOffset] = (0.0, 0.0)

``config.parse`` checks every number that differs from its field's default, and refuses one out of range with the unit
and the likely slip: millimeters for meters, radians for degrees, milliseconds for seconds, percent for a fraction.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_type_hints


@dataclass(frozen=True)
class Quantity:
    """A physical quantity with its unit and range, as metadata of a field's type.

    Attributes:
        name: noun phrase for messages.
        unit: symbol of the unit; empty for numbers without one.
        low: lowest possible value.
        high: highest possible value.
        round_angle: whether people state the angle in whole degrees, so that three digits tell radians.
    """

    name: str
    unit: str
    low: float
    high: float
    round_angle: bool = False

    @property
    def range_text(self) -> str:
        """The range with the unit."""
        return f"{self.low:g} to {self.high:g} {self.unit}".rstrip()

    def refusal(self, value: float) -> tuple[str, str] | None:
        """Message and remedy for an impossible value; None for a possible one."""
        if self.low <= value <= self.high:
            if self.unit in ("°", "°/s") and _is_written_in_radians(value, self.round_angle):
                meant = f"{math.degrees(value):.4g}"
                message = f"{value:.8g} {self.unit} looks like radians: {meant}° are {value:.8g} rad"
                return message, f"write the {self.name} in degrees: {meant}; for {value:.8g}° itself, round it"
            return None
        message = f"{value:.8g} {self.unit}".rstrip() + f" is not a possible {self.name} (found {value!r})"
        slips = [
            f"{value * factor:.6g} if {value:.8g} is in {other}"
            for other, factor in SLIPS.get(self.unit, ())
            if value and self.low <= value * factor <= self.high
        ]
        remedy = (
            f"write the {self.name} in {UNIT_NAMES.get(self.unit, self.unit or 'plain numbers')}, {self.range_text}"
        )
        return message, remedy + (f": {' or '.join(slips)}" if slips else "")


UNIT_NAMES = {
    "m": "meters",
    "°": "degrees",
    "rad": "radians",
    "s": "seconds",
    "Hz": "hertz",
    "m/s": "meters per second",
    "rad/s": "radians per second",
    "°/s": "degrees per second",
    "m²": "square meters",
    "rad²": "square radians",
    "px": "pixels",
    "of 1": "parts of 1",
    "m/px": "meters per pixel",
}

_DEG, _RAD = math.radians(1), math.degrees(1)
SLIPS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "m": (("millimeters", 1e-3), ("centimeters", 1e-2)),
    "m/s": (("millimeters per second", 1e-3), ("centimeters per second", 1e-2)),
    "m/s²": (("millimeters per second²", 1e-3), ("centimeters per second²", 1e-2)),
    "m²": (("square millimeters", 1e-6), ("square centimeters", 1e-4)),
    "m/px": (("millimeters per pixel", 1e-3), ("centimeters per pixel", 1e-2)),
    "°": (("radians", _RAD),),
    "°/s": (("radians per second", _RAD),),
    "rad": (("degrees", _DEG),),
    "rad/s": (("degrees per second", _DEG),),
    "rad/s²": (("degrees per second²", _DEG),),
    "rad²": (("square degrees", _DEG**2),),
    "s": (("milliseconds", 1e-3), ("microseconds", 1e-6), ("nanoseconds", 1e-9)),
    "of 1": (("percent", 1e-2),),
    "1/s": (),
}
"""The usual slips by unit: the other unit, and the factor from it."""

StepLength = Annotated[float, Quantity("length of a step", "m", 0.001, 2)]
TurnAngle = Annotated[float, Quantity("angle of a turn", "°", 0.5, 180, round_angle=True)]
FieldOfView = Annotated[float, Quantity("field of view", "°", 4, 179)]
TiltAngle = Annotated[float, Quantity("tilt", "°", -90, 90)]
CameraHeight = Annotated[float, Quantity("height above the floor", "m", 0, 3)]
BodyRadius = Annotated[float, Quantity("radius of a robot", "m", 0.01, 2)]
NearDepth = Annotated[float, Quantity("shortest measured depth", "m", 0, 5)]
FarDepth = Annotated[float, Quantity("longest measured depth", "m", 0.05, 65.535)]
DepthUnit = Annotated[float, Quantity("step of depth", "m", 0, 0.01)]
GoalDistance = Annotated[float, Quantity("distance to a goal", "m", 0, 20)]
StartDistance = Annotated[float, Quantity("distance from the start to the goal", "m", 0.05, 200)]
Reach = Annotated[float, Quantity("reach", "m", 0, 10)]
PartOffset = Annotated[float, Quantity("distance between parts of a robot", "m", -2, 2)]
Misalignment = Annotated[float, Quantity("misalignment", "m", -1, 1)]
Spread = Annotated[float, Quantity("standard deviation of a distance", "m", 0, 1)]
SmallAngle = Annotated[float, Quantity("noise or tolerance of an angle", "rad", 0, 0.15)]
DepthError = Annotated[float, Quantity("error of depth", "m", -0.5, 0.5)]
AngleSpread = Annotated[float, Quantity("standard deviation of an angle", "°", 0, 45)]
AngleTolerance = Annotated[float, Quantity("tolerance of an angle", "°", 0.001, 45)]
Baseline = Annotated[float, Quantity("baseline of a stereo camera", "m", 0.005, 1)]
TagSize = Annotated[float, Quantity("edge of a tag's black square", "m", 0.01, 2)]
MapCoordinate = Annotated[float, Quantity("coordinate in a map", "m", -500, 500)]
CeilingHeight = Annotated[float, Quantity("height of a ceiling", "m", 0.05, 30)]
Resolution = Annotated[float, Quantity("resolution of a map", "m/px", 0.0005, 1)]
SmallMove = Annotated[float, Quantity("tolerance of a position", "m", 1e-6, 1)]
WheelRadius = Annotated[float, Quantity("radius of a wheel", "m", 0.005, 0.5)]
WheelSeparation = Annotated[float, Quantity("distance between wheels", "m", 0.02, 2)]

Latency = Annotated[float, Quantity("latency", "s", 0, 1)]
SignedLatency = Annotated[float, Quantity("latency", "s", -1, 1)]
Exposure = Annotated[float, Quantity("exposure or readout", "s", 0, 1)]
Response = Annotated[float, Quantity("time constant", "s", 0.00001, 0.5)]
ControlPeriod = Annotated[float, Quantity("control period", "s", 0.0001, 10)]
ShortTime = Annotated[float, Quantity("short time", "s", 0, 60)]
Period = Annotated[float, Quantity("period", "s", 0.001, 60)]
Timeout = Annotated[float, Quantity("time limit", "s", 0.001, 900)]
EpisodeTime = Annotated[float, Quantity("duration of an episode", "s", 0.1, 20_000)]

Speed = Annotated[float, Quantity("speed", "m/s", 0, 3)]
StillSpeed = Annotated[float, Quantity("speed at rest", "m/s", 0, 0.2)]
StillTurnRate = Annotated[float, Quantity("turn rate at rest", "rad/s", 0, 0.3)]
AngularAcceleration = Annotated[float, Quantity("angular acceleration", "rad/s²", 0, 30)]
Rate = Annotated[float, Quantity("rate", "Hz", 0.05, 1000)]

Fraction = Annotated[float, Quantity("fraction", "of 1", 0, 1)]

_PLACE = Quantity("distance", "m", -100, 100)
BY_SUFFIX: Mapping[str, Quantity | None] = {
    "_m_s2": Quantity("acceleration", "m/s²", -100, 100),
    "_rad_s2": Quantity("angular acceleration", "rad/s²", -350, 350),
    "_m_s": Quantity("speed", "m/s", -5, 5),
    "_rad_s": Quantity("turn rate", "rad/s", -9, 9),
    "_deg_s": Quantity("turn rate", "°/s", -720, 720),
    "_1_s": None,  # gains
    "_hz": Quantity("rate", "Hz", 0, 1000),
    "_ns": None,
    "_us": None,
    "_m": _PLACE,
    "_deg": Quantity("angle", "°", -360, 360),
    "_rad": Quantity("angle", "rad", -2 * math.pi, 2 * math.pi),
    "_s": Quantity("time", "s", -86_400, 86_400),
    "_fraction": Quantity("fraction", "of 1", 0, 1),
    "_probability": Quantity("probability", "of 1", 0, 1),
    "_kg": Quantity("mass", "kg", 0, 500),
    "_v": Quantity("voltage", "V", 0, 100),
    "_c": Quantity("temperature", "°C", -50, 150),
}
"""The widest range by the unit at the end of a field's name; None for units whose numbers have none."""


def problem(document: Any) -> tuple[tuple[int | str, ...], float, Quantity] | None:
    """The first impossible number in a dataclass: its place, the number and its quantity; None if all are possible."""
    return next(((place, value, kind) for place, value, kind in numbers(document) if kind.refusal(value)), None)


def numbers(
    value: Any, kind: Quantity | None = None, place: tuple[int | str, ...] = ()
) -> Iterator[tuple[tuple[int | str, ...], float, Quantity]]:
    """All numbers with units in a value of a parsed document that differ from their fields' defaults.

    Args:
        value: dataclass, tuple, list, mapping, or number.
        kind: quantity of the field that holds the value; None without a unit.
        place: path to the value.

    Yields:
        The place of a number, the number, and its quantity.
    """
    if isinstance(value, (int, float)):
        if kind is not None and not isinstance(value, bool):
            yield place, float(value), kind
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from numbers(item, kind, (*place, index))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from numbers(item, kind, (*place, name))
    elif dataclasses.is_dataclass(value):
        owner: Any = type(value)
        for name, (field_kind, default) in quantities_of(owner).items():
            if (item := getattr(value, name)) is not default and item != default:
                yield from numbers(item, field_kind, (*place, name))


def check_depth_range(min_m: float, max_m: float) -> None:
    """Check a sensor's depths in a ``__post_init__``. Raises ``ValueError`` for an empty or negative range."""
    if not 0 <= min_m < max_m:
        raise ValueError(f"need 0 <= depth_min_m < depth_max_m, got {min_m:g} and {max_m:g}")


@functools.cache
def quantities_of(cls: type) -> dict[str, tuple[Quantity | None, Any]]:
    """The quantity and default of each field of a dataclass, by name; the quantity is None without a unit."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        field.name: (declared(hints[field.name]) or of_name(field.name), field.default)
        for field in dataclasses.fields(cls)
        if field.init
    }


def of_name(name: str) -> Quantity | None:
    """The quantity that a name's unit stands for."""
    return next((kind for suffix, kind in BY_SUFFIX.items() if name.endswith(suffix)), None)


def declared(hint: Any) -> Quantity | None:
    """The quantity in a type's metadata; None if it has none."""
    own = (part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Quantity))
    return next(own, None) or next(filter(None, map(declared, get_args(hint))), None)


def _is_written_in_radians(value: float, is_round: bool) -> bool:
    """Whether a number of degrees is, to its last digit, what a usual angle is in radians: 1.5708 or 0.5236.

    Fewer digits are needed for angles that people use more: three for right angles, four for multiples of 15 degrees
    and six for whole degrees, nine for tenths.
    """
    if value == 0:
        return False
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    decimals = len(repr(value).partition(".")[2]) if "e" not in repr(value) else 17
    degrees = math.degrees(value)
    margin = 0.5 * 10.0**-decimals + 1e-12
    for step_deg, needed in ((90.0, 3), (15.0, 3 if is_round else 4), (1.0, 6), (0.1, 9)):
        nearest = round(degrees / step_deg) * step_deg
        is_near = abs(math.radians(nearest) - value) <= margin
        if is_near and 0 < abs(nearest) <= 360 and len(digits) >= needed:
            return True
    return False
