"""Depth filters of the SDK, in the order recommended by its authors, applied before reprojection.

All filters are off by default, because they alter measurements. A hole filled by ``hole_filling``, or by ``holes_fill``
of another filter, is a guess that a policy cannot distinguish from a measurement.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from drivers.realsense.sdk import rs
from robot_runtime.common import config


@dataclass(frozen=True)
class Threshold(config.Strict):
    """Range of depth; values outside become holes."""

    min_m: Annotated[float, Field(ge=0, le=16)]
    max_m: Annotated[float, Field(ge=0, le=16)]

    def __post_init__(self) -> None:
        if not self.min_m < self.max_m:
            raise ValueError(f"need min_m < max_m, got {self.min_m} and {self.max_m}")


@dataclass(frozen=True)
class Spatial(config.Strict):
    """Edge-preserving smoothing along rows and columns (Gastal and Oliveira 2011).

    Attributes:
        magnitude: number of passes.
        smooth_alpha: 1 does not smooth.
        smooth_delta: smallest step of an edge, in disparities of 1/32 pixel, or depth units without disparity.
        holes_fill: 0 leaves holes; 1..5 fills from the left up to 2, 4, 8, 16 or any number of pixels.
    """

    magnitude: Annotated[int, Field(ge=1, le=5)] = 2
    smooth_alpha: Annotated[float, Field(ge=0.25, le=1)] = 0.5
    smooth_delta: Annotated[int, Field(ge=1, le=50)] = 20
    holes_fill: Annotated[int, Field(ge=0, le=5)] = 0


@dataclass(frozen=True)
class Temporal(config.Strict):
    """Smoothing over consecutive frames of a reading, all exposed after the robot came to rest.

    Attributes:
        frames: number of frames; each takes a period of the camera.
        smooth_alpha: weight of the newest.
        smooth_delta: edge threshold, see :class:`Spatial`.
        persistency: 0 drops lost pixels; 1..8 as the SDK numbers them, up to always.
    """

    frames: Annotated[int, Field(ge=2, le=30)] = 3
    smooth_alpha: Annotated[float, Field(ge=0, le=1)] = 0.4
    smooth_delta: Annotated[int, Field(ge=1, le=100)] = 20
    persistency: Annotated[int, Field(ge=0, le=8)] = 0


@dataclass(frozen=True)
class FilterOptions(config.Strict):
    """Selected filters; None leaves one out.

    Attributes:
        decimation: depth pixels in each direction that become one; their median up to 3, their mean from 4 on.
        threshold: range of depth.
        disparity: whether ``spatial`` and ``temporal`` smooth disparities, whose noise is independent of the distance.
        spatial: smoothing within a frame.
        temporal: smoothing over frames.
        hole_filling: 0 takes the left neighbor, 1 the farthest around, 2 the nearest around.
    """

    decimation: Annotated[int, Field(ge=2, le=8)] | None = None
    threshold: Threshold | None = None
    disparity: bool = True
    spatial: Spatial | None = None
    temporal: Temporal | None = None
    hole_filling: Annotated[int, Field(ge=0, le=2)] | None = None

    @property
    def frames(self) -> int:
        """Number of consecutive frames of a reading."""
        return 1 if self.temporal is None else self.temporal.frames


class FilterChain:
    """Filters of a reading, without memory of earlier readings."""

    def __init__(self, options: FilterOptions) -> None:
        self._blocks: list[Any] = []
        if options.decimation is not None:
            self._add(rs.decimation_filter(), filter_magnitude=options.decimation)
        if (threshold := options.threshold) is not None:
            self._add(rs.threshold_filter(), min_distance=threshold.min_m, max_distance=threshold.max_m)
        smooths = options.spatial is not None or options.temporal is not None
        if options.disparity and smooths:
            self._add(rs.disparity_transform(True))
        if (spatial := options.spatial) is not None:
            self._add(
                rs.spatial_filter(),
                filter_magnitude=spatial.magnitude,
                filter_smooth_alpha=spatial.smooth_alpha,
                filter_smooth_delta=spatial.smooth_delta,
                holes_fill=spatial.holes_fill,
            )
        if (temporal := options.temporal) is not None:
            self._add(
                rs.temporal_filter(),
                filter_smooth_alpha=temporal.smooth_alpha,
                filter_smooth_delta=temporal.smooth_delta,
                holes_fill=temporal.persistency,
            )
        if options.disparity and smooths:
            self._add(rs.disparity_transform(False))
        if options.hole_filling is not None:
            self._add(rs.hole_filling_filter(), holes_fill=options.hole_filling)

    def process(self, depth_frame: Any) -> Any:
        """Return the filtered frame, whose size and intrinsics may differ."""
        for block in self._blocks:
            depth_frame = block.process(depth_frame)
        return depth_frame

    def _add(self, block: Any, **options: float) -> None:
        for name, value in options.items():
            block.set_option(getattr(rs.option, name), float(value))
        self._blocks.append(block)
