"""``hal.Manipulator``, ``hal.ObjectTracker`` and ``Placer.place_objects`` as a test suite, in addition to the robot's.

::

    class TestMyHand(ObjectConformance):
        site = ObjectSite("mug_1", pose, start=SE2(), elsewhere=SE2(1, 0), crosshair=(0.5, 0.6), reach_m=1.0)

        def make_robot(self) -> Robot: ...
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import NOT_FINITE, Harness, check, refused
from robot_runtime.errors import EpisodeError, InvalidCommand, NotConnected, StaleData
from robot_runtime.hal import Manipulator, ObjectTracker, Robot
from robot_runtime.scenes.objects import GrabOutcome, ObjectPose


@dataclass(frozen=True)
class ObjectSite:
    """An object and the pose from which the robot grabs it.

    Attributes:
        object_id: id of the object.
        pose: pose of the object.
        start: pose of the robot, level camera; there, the crosshair is on the object, in reach, and nothing is in the
            way.
        elsewhere: pose of the robot; there, nothing is under the crosshair and the object can be released.
        crosshair: crosshair as of ``Manipulator.grab_release``.
        reach_m: reach as of ``Manipulator.grab_release``.
        tolerance_m: accuracy of the tracker for an object at rest.
    """

    object_id: str
    pose: ObjectPose
    start: SE2
    elsewhere: SE2
    crosshair: tuple[float, float]
    reach_m: float
    tolerance_m: float = 0.01


class ObjectConformance(Harness):
    """Override ``make_robot``, state the site, and name the class ``Test...``."""

    site: ClassVar[ObjectSite]

    def parts(self, robot: Robot) -> tuple[Manipulator, ObjectTracker]:
        """Hand and tracker of such a robot."""
        check(robot.manipulator is not None and robot.tracker is not None, "the robot has a manipulator and a tracker")
        assert robot.manipulator is not None
        assert robot.tracker is not None
        return robot.manipulator, robot.tracker

    @contextmanager
    def at_object(self) -> Iterator[tuple[Robot, Manipulator, ObjectTracker]]:
        """A connected robot before the object."""
        with self.connected() as robot:
            robot.placer.place_objects({self.site.object_id: self.site.pose})
            robot.placer.place(self.site.start, 0.0)
            yield robot, *self.parts(robot)

    def seen_at(self, tracker: ObjectTracker) -> ObjectPose:
        """Position at which the tracker sees the object."""
        tracked = tracker.objects(1.0)
        check(self.site.object_id in tracked.poses, "the tracker sees an object that is not held", tracked)
        return tracked.poses[self.site.object_id]

    def lies(self, tracker: ObjectTracker, pose: ObjectPose, rule: str) -> None:
        """Fail unless the object lies there in the plane."""
        off_m = math.dist(self.seen_at(tracker).position[:2], pose.position[:2])
        check(off_m <= self.site.tolerance_m, rule, f"{off_m:.3f} m off")

    def test_tracker_info_is_sane_while_disconnected(self) -> None:
        _, tracker = self.parts(self.make_robot())
        check(bool(tracker.info.name), "TrackerInfo.name is not empty")
        check(tracker.info.rate_hz > 0, "TrackerInfo.rate_hz is positive", tracker.info.rate_hz)

    def test_hand_and_tracker_are_among_the_robots_devices(self) -> None:
        robot = self.make_robot()
        check({*self.parts(robot)} <= {*robot.devices}, "Robot.devices has the manipulator and the tracker")

    def test_hand_and_tracker_raise_not_connected_before_and_after_their_connection(self) -> None:
        robot = self.make_robot()
        hand, tracker = self.parts(robot)
        for when in ("before connect()", "after close()"):
            for name, use in (
                ("manipulator.held", lambda: hand.held),
                ("manipulator.grab_release", lambda: hand.grab_release((0.5, 0.5), 1.0, 1)),
                ("tracker.objects", lambda: tracker.objects(1.0)),
            ):
                with refused(NotConnected, f"{name} raises NotConnected {when}"):
                    use()
            with robot:
                robot.clock.sleep(self.start_s)

    def test_objects_are_where_they_were_placed(self) -> None:
        with self.at_object() as (robot, hand, tracker):
            self.lies(tracker, self.site.pose, "an object is where it was placed")
            tracked = tracker.objects(1.0)
            check(tracked.stamp_ns <= robot.clock.now_ns(), "poses are not stamped in the future")
            check(tracked.held == hand.held == (), "nothing is held after objects were placed", tracked.held)
            check(all(pose.fault is None for pose in tracked.poses.values()), "every pose is one", tracked.poses)

    def test_tracker_raises_rather_than_return_an_old_pose(self) -> None:
        with self.at_object() as (_, _, tracker), refused(StaleData, "poses older than max_age_s raise StaleData"):
            tracker.objects(-1.0)

    def test_objects_are_placed_all_or_none(self) -> None:
        site = self.site
        with self.at_object() as (robot, _, tracker):
            aside = replace(site.pose, position=(site.pose.position[0], site.pose.position[1] + 0.3, 0.5))
            with refused(EpisodeError, "an object that is not there is refused"):
                robot.placer.place_objects({site.object_id: aside, "no such object": site.pose})
            for value in NOT_FINITE:
                with refused(EpisodeError, "a pose that is not finite is refused"):
                    robot.placer.place_objects({site.object_id: ObjectPose((value, 0.0, 0.0))})
            self.lies(tracker, site.pose, "a refused placement moves nothing")

    def test_hand_takes_what_is_under_the_crosshair_and_lets_it_go_at_the_same_place(self) -> None:
        site = self.site
        with self.at_object() as (_, hand, tracker):
            before = self.seen_at(tracker)
            grab = hand.grab_release(site.crosshair, site.reach_m, 1)
            check(grab.outcome is GrabOutcome.GRABBED and grab.object_id == site.object_id, "it is taken", grab)
            tracked = tracker.objects(1.0)
            check(tracked.held == hand.held == (site.object_id,), "hand and tracker say what is held", tracked.held)
            check(site.object_id not in tracked.poses, "what is held has no pose", tracked.poses)
            grab = hand.grab_release(site.crosshair, site.reach_m, 1)
            check(grab.outcome is GrabOutcome.RELEASED and grab.object_id == site.object_id, "it is let go", grab)
            check(hand.held == (), "what was let go is not held")
            self.lies(tracker, before, "what is let go where it was taken lies where it lay")

    def test_hand_lets_go_at_the_same_pose_relative_to_the_robot(self) -> None:
        site = self.site
        with self.at_object() as (robot, hand, tracker):
            hand.grab_release(site.crosshair, site.reach_m, 1)
            robot.placer.place(site.elsewhere, 0.0)
            check(hand.held == (site.object_id,), "what is held goes with the robot")
            grab = hand.grab_release(site.crosshair, site.reach_m, 1)
            check(grab.outcome is GrabOutcome.RELEASED, "it is let go elsewhere", grab)
            expected = site.pose.moved(site.start.inverse()).moved(site.elsewhere)
            self.lies(tracker, expected, "an object is let go at the same pose relative to the robot")

    def test_hand_takes_nothing_where_nothing_is(self) -> None:
        site = self.site
        with self.at_object() as (robot, hand, tracker):
            short = hand.grab_release(site.crosshair, 0.05, 1)
            robot.placer.place(site.elsewhere, 0.0)
            for grab in (short, hand.grab_release(site.crosshair, site.reach_m, 1)):
                check(grab.outcome is GrabOutcome.NOTHING, "what is out of reach or not there is not taken", grab)
                check(grab.object_id is None and bool(grab.detail), "a hand that takes nothing says why", grab)
            self.lies(tracker, site.pose, "what was not taken stays")

    def test_hand_refuses_what_makes_no_sense(self) -> None:
        with self.at_object() as (_, hand, tracker):
            for crosshair in ((-0.1, 0.5), (0.5, 1.1), (math.nan, 0.5)):
                with refused(InvalidCommand, "a crosshair outside the image is refused"):
                    hand.grab_release(crosshair, self.site.reach_m, 1)
            for reach_m in (0.0, -1.0, *NOT_FINITE):
                with refused(InvalidCommand, "a reach that is not a positive number is refused"):
                    hand.grab_release(self.site.crosshair, reach_m, 1)
            with refused(InvalidCommand, "a backpack without room is refused"):
                hand.grab_release(self.site.crosshair, self.site.reach_m, 0)
            self.lies(tracker, self.site.pose, "a refused command moves nothing")

    def test_placing_objects_empties_the_backpack(self) -> None:
        with self.at_object() as (robot, hand, tracker):
            hand.grab_release(self.site.crosshair, self.site.reach_m, 1)
            robot.placer.place_objects({self.site.object_id: self.site.pose})
            check(hand.held == (), "placing objects empties the backpack", hand.held)
            self.lies(tracker, self.site.pose, "an object that was held is where it was placed")
