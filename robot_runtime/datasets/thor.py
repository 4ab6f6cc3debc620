"""Fields common to the data sets of AI2-THOR."""

from typing_extensions import TypedDict

from robot_runtime.datasets.io import OPEN, Finite


class Position(TypedDict):
    """A point in THOR's frame, meters."""

    __pydantic_config__ = OPEN  # type: ignore[misc]

    x: Finite
    y: Finite
    z: Finite
