"""The camera over ROS tells the log how its images are stamped; no master."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from drivers.ros.camera.driver import NOMINAL, SKEW_PAIRS, RosCamera
from drivers.ros.connection.clock import RosClock
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.options import CameraOptions
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.options import MasterOptions, RosOptions

MS = 1_000_000


def camera() -> RosCamera:
    session = Session(MasterOptions(uri="http://10.0.0.1:11311"), RosClock(0.05, 1.0))
    return RosCamera(session, RosOptions("pyrobot-kobuki", CameraOptions("habitat")), NOMINAL, MotionHistory())


def expose(made: RosCamera, count: int, skew_ms: int) -> None:
    for frame in range(count):
        picture: Any = SimpleNamespace(data=bytes([frame]))
        made._pairs.add_color(33 * frame * MS, picture)
        made._pairs.add_depth((33 * frame + skew_ms) * MS, picture)


def test_the_skew_of_color_and_depth_is_one_event_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    made = camera()
    with caplog.at_level(logging.WARNING):
        expose(made, SKEW_PAIRS - 1, 9)
        assert made.events() == ()
        expose(made, SKEW_PAIRS, 9)
        (event,) = made.events()
        assert made.events() == (), "it is told once"
        made.close()
    assert (event.source, event.kind) == ("camera", "images")
    assert "+0.0090 s" in event.detail
    assert "/camera/aligned_depth_to_color/image_raw" in event.detail
    assert not caplog.records, "a camera that stamps by its own clock is no fault"


def test_images_of_one_stamp_are_no_event() -> None:
    made = camera()
    expose(made, 3 * SKEW_PAIRS, 0)
    assert made.events() == ()
