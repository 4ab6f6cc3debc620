"""A fake robot whose base senses no contact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drivers.fake import driver
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext

YAML = "name: blind\ndriver: contactless_base.make_robot\n"


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    robot = driver.make_robot(context, name, options, where)
    base: Any = robot.base
    base._info = replace(base.info, senses_contact=False)
    return robot
