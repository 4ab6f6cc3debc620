"""Additional parts of a robot that moves objects: a manipulator and a tracker of the objects."""

from abc import abstractmethod
from dataclasses import dataclass

from robot_runtime.hal.device import Device
from robot_runtime.scenes.objects import Grab, ObjectSource, TrackedObjects


class Manipulator(Device):
    """A hand without fingers: the "magic pointer" (Batra et al. 2020, 3.2.1 and A.5), or an arm that acts like one.

    What it takes goes into a backpack: out of the world, neither seen nor touched, until it is let go.
    """

    @property
    @abstractmethod
    def held(self) -> tuple[str, ...]:
        """Ids of the objects in the backpack, in the order in which they were taken."""

    @abstractmethod
    def grab_release(self, crosshair: tuple[float, float], reach_m: float, capacity: int) -> Grab:
        """Take what is under the crosshair, or let go what was taken last.

        If the backpack has room, a ray goes from the camera's optical center through the crosshair; if the first thing
        that it meets within ``reach_m`` is a movable object, that is taken. Otherwise what was taken last is released
        with the pose relative to base_link that it had then. A release where something stands in the way, or where
        nothing could carry the object, does not happen; the result states it.

        Args:
            crosshair: fractions of the image's width from the left and of its height from the top; (0.5, 0.5) is the
                middle.
            reach_m: reach from the optical center, along the ray.
            capacity: how many objects the backpack holds.

        Raises:
            InvalidCommand: a crosshair outside the image, a reach or capacity that is not positive.
            DeviceFault: the hand failed.
        """


@dataclass(frozen=True, slots=True)
class TrackerInfo:
    """A source of object poses: its name, what kind of source it is, and its nominal rate."""

    name: str
    source: ObjectSource
    rate_hz: float


class ObjectTracker(Device):
    """Source of the movable objects' poses in ``map``."""

    @property
    @abstractmethod
    def info(self) -> TrackerInfo:
        """Name, kind and rate, also while disconnected."""

    @abstractmethod
    def objects(self, max_age_s: float) -> TrackedObjects:
        """All objects that an episode is about. Raises ``StaleData`` naming one whose pose is older."""
