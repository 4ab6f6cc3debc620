"""The ``options`` of Marvelmind beacons in a localizer's YAML file."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from drivers.marvelmind.emulator import EmulatorOptions
from drivers.marvelmind.mounting import Mounting, Pair
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import Latency, MapCoordinate, PartOffset, Rate, Spread
from robot_runtime.errors import ConfigError
from robot_runtime.localization.alignment import load_alignment


@dataclass(frozen=True)
class Placement(config.Strict):
    """Pose of the beacons' frame in ``map``."""

    x_m: MapCoordinate
    y_m: MapCoordinate
    yaw_deg: float

    @property
    def pose(self) -> SE2:
        return SE2(self.x_m, self.y_m, math.radians(self.yaw_deg))


@dataclass(frozen=True)
class MarvelmindOptions(config.Strict):
    """The ``options`` of a localizer on Marvelmind beacons.

    Attributes:
        alignment: file of `robot-runtime calibrate localization`, which replaces ``beacons_in_map``, ``lever_m`` and
            the pair's ``yaw_offset_deg``.
        beacons_in_map: frame of the beacon map. None, without ``alignment``, gives poses in that frame, which serve
            for finding the alignment only.
        port: port of the hedgehog.
        baud_rate: baud rate of the port; irrelevant over USB.
        address: address of the hedgehog; None takes the only one that sends.
        rate_hz: rate of measurements, as shown by the vendor's tool.
        noise_m: standard deviation of a fix in x and in y.
        latency_s: time from the sending of a packet to its arrival; the delay before is in the packet.
        lever_m: the hedgehog, or the middle of the pair, in base_link: forward, left.
        pair: options of a pair of hedgehogs that measures a heading; None for a single hedgehog.
        emulator: behavior of the emulated hedgehog on a simulated robot.
    """

    alignment: str | None = None
    beacons_in_map: Placement | None = None
    port: str = "/dev/marvelmind"
    baud_rate: int = 500_000
    address: Annotated[int, Field(ge=1, le=254)] | None = None
    rate_hz: Rate = 8.0
    noise_m: Annotated[Spread, Field(gt=0)] = 0.02
    latency_s: Latency = 0.0
    lever_m: tuple[PartOffset, PartOffset] = (0.0, 0.0)
    pair: Pair | None = None
    emulator: EmulatorOptions = field(default_factory=EmulatorOptions)

    def __post_init__(self) -> None:
        offset_deg = 0.0 if self.pair is None else self.pair.yaw_offset_deg
        if self.alignment is not None and (self.beacons_in_map or any(self.lever_m) or offset_deg):
            raise ValueError(
                "alignment says what beacons_in_map, lever_m and pair.yaw_offset_deg would: leave them out"
            )
        if self.unaligned and (any(self.lever_m) or offset_deg):
            raise ValueError(
                "lever_m and pair.yaw_offset_deg go with beacons_in_map; without it, all three are to be calibrated"
            )

    @property
    def unaligned(self) -> bool:
        """Whether the beacons' frame in ``map`` is unknown."""
        return self.alignment is None and self.beacons_in_map is None

    def mounting(self, robot: str) -> Mounting:
        """Return the mounting, by the alignment file if given. Raises ``ConfigError``, ``CalibrationError``."""
        if self.alignment is None:
            placement = self.beacons_in_map
            return Mounting(SE2() if placement is None else placement.pose, self.lever_m, self.pair)
        found, pair = load_alignment(Path(self.alignment), robot), self.pair
        if pair is not None and found.yaw_offset_rad is None:
            raise ConfigError(
                f"{self.alignment}: contains no heading of the pair", "calibrate it with both hedgehogs on"
            )
        if pair is not None and found.yaw_offset_rad is not None:
            pair = replace(pair, yaw_offset_deg=math.degrees(found.yaw_offset_rad))
        return Mounting(found.map_from_source, found.lever_m, pair)
