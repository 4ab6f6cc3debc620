"""The command ``bench ros``: reaction times, image transport and motion of the LoCoBot over rospy.

Every group of rows is a function of the network and a number of trials, in a module of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from tests.benchmarks.report import JsonFile, report


def ros(
    trials: Annotated[int, typer.Option(min=1, help="Stops and motions of each kind, and pairs of images.")] = 100,
    cuts: Annotated[int, typer.Option(min=0, help="Actions and starts of each kind over a poor link.")] = 4,
    json: JsonFile = None,
) -> None:
    """Measure the LoCoBot over ROS: stops of the robot-side guard, images, and the time and accuracy of motion.

    Master, guard, robot and runtime are processes of this computer, connected by TCP over loopback. Stops and images
    are measured in real time, motion in the simulated robot's. Cuts and losses of the link need root and /dev/net/tun.
    """
    from robot_runtime.common.console import console, progress_bar
    from tests.benchmarks.ros_locobot.link import link_rows
    from tests.benchmarks.ros_locobot.network import local_network

    with local_network("bench") as network, progress_bar() as progress:
        from tests.benchmarks.ros_locobot.camera import camera_rows
        from tests.benchmarks.ros_locobot.guard import guard_rows
        from tests.benchmarks.ros_locobot.motion import motion_rows

        rows = []
        # Motion comes last: from then on, time on this network is simulated.
        for name, total, measure in (
            ("stops", 2 * trials, guard_rows),
            ("images", trials, camera_rows),
            ("motion", 2 * trials, motion_rows),
        ):
            rows += measure(network, trials, partial(progress.advance, progress.add_task(name, total=total, note="")))
    if cuts:
        with progress_bar() as progress:
            rows += link_rows(cuts, partial(progress.advance, progress.add_task("link", total=3 * cuts, note="")))
    report("ros", rows, json, console)
