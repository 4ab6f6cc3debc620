"""Conformance tests of a camera."""

import numpy as np

from robot_runtime.common.clock import NS_PER_S, ns_to_seconds
from robot_runtime.conformance.harness import Harness, check, refused
from robot_runtime.errors import DeviceFault, StaleData


class CameraConformance(Harness):
    """``hal.Camera``."""

    def test_camera_info_is_sane_while_disconnected(self) -> None:
        info = self.make_robot().camera.info
        k = info.intrinsics
        check(k.width > 0 and k.height > 0 and k.fx > 0 and k.fy > 0, "intrinsics are positive", k)
        check(0 < k.cx < k.width and 0 < k.cy < k.height, "the principal point lies in the image", k)
        check(0 <= info.depth_min_m < info.depth_max_m <= 100, "the depth range is ordered and in meters", info)
        check(0 <= info.depth_unit_m <= 0.01, "the depth unit is in meters", info.depth_unit_m)
        check(info.rate_hz > 0, "the rate is positive", info.rate_hz)

    def test_camera_delivers_a_pair_exposed_after_the_asked_instant(self) -> None:
        with self.connected() as robot:
            info = robot.camera.info
            shape = (info.intrinsics.height, info.intrinsics.width)
            asked_ns = robot.clock.now_ns()
            kept: list[tuple[np.ndarray, np.ndarray]] = []
            for _ in range(3):
                frame = robot.camera.capture(asked_ns, timeout_s=1.0)
                check(frame.stamp_ns >= asked_ns, "a frame is exposed at or after the asked instant", frame.stamp_ns)
                check(frame.stamp_ns <= robot.clock.now_ns(), "a frame is not stamped in the future")
                late_s = ns_to_seconds(frame.stamp_ns - asked_ns)
                check(late_s <= 0.1 + 3 / info.rate_hz, "it is the first such frame", f"{late_s:.3f} s later")
                check(frame.rgb.dtype == np.uint8 and frame.rgb.shape == (*shape, 3), "rgb is uint8 (H, W, 3)")
                check(frame.depth_m.dtype == np.float32 and frame.depth_m.shape == shape, "depth is float32 (H, W)")
                check(frame.semantic is None, "there is no segmentation unless asked for")
                measured = frame.depth_m[frame.depth_m != 0]
                inside = (measured >= info.depth_min_m - 1e-6) & (measured <= info.depth_max_m + 1e-6)
                check(bool(inside.all()), "depth is 0 or meters within the sensor's range")
                if info.depth_unit_m:
                    lattice = measured / info.depth_unit_m
                    check(
                        bool(np.allclose(lattice, np.round(lattice), atol=0.02)),
                        "depth is a multiple of the depth unit",
                    )
                kept.append((frame.rgb, frame.rgb.copy()))
                asked_ns = frame.stamp_ns + 1
            check(all(np.array_equal(now, then) for now, then in kept), "a delivered frame is never overwritten")

    def test_camera_gives_up_in_time(self) -> None:
        with self.connected() as robot:
            before_ns = robot.clock.now_ns()
            with refused(StaleData, "capture() raises StaleData at its timeout"):
                robot.camera.capture(before_ns + 60 * NS_PER_S, timeout_s=0.3)
            waited_s = ns_to_seconds(robot.clock.now_ns() - before_ns)
            check(waited_s <= 0.3 + 0.2, "capture() respects its timeout", f"{waited_s:.3f} s")

    def test_camera_segments_exactly_when_it_says_so(self) -> None:
        with self.connected() as robot:
            info = robot.camera.info
            if not info.has_semantic:
                with refused(DeviceFault, "a camera without segmentation refuses to deliver it"):
                    robot.camera.capture(robot.clock.now_ns(), timeout_s=1.0, semantic=True)
                return
            semantic = robot.camera.capture(robot.clock.now_ns(), timeout_s=1.0, semantic=True).semantic
            check(semantic is not None, "segmentation that is asked for is delivered")
            assert semantic is not None
            check(semantic.dtype == np.int32, "segmentation is int32", semantic.dtype)
            check(semantic.shape == (info.intrinsics.height, info.intrinsics.width), "segmentation is (H, W)")
            check(int(semantic.min()) >= -1, "segmentation is an object's index, or -1", semantic.min())
