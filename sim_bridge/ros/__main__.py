"""The program ``python -m sim_bridge.ros``: its command, or what to source where Python does not find ROS."""

import sys

from robot_runtime.common.config import ROS_2_REMEDY, ROS_MODULES, ROS_REMEDY


def main() -> int:
    """Run the command; say what is missing if it cannot be imported."""
    try:
        from sim_bridge.ros.command import main as run

        return run()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ROS_MODULES:
            raise
        remedy = ROS_2_REMEDY if error.name == "rclpy" else ROS_REMEDY
        print(f"error: Python does not find {error.name!r}\n  remedy: {remedy}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
