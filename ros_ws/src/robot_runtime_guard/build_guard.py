"""Builder of the guard as one file, for any Python >= 3.8 with rospy or rclpy: ``python3 build_guard.py FILE``.

The file is a zip archive that Python runs. It holds the guard's modules as they are in this repository, so that the
robot needs neither the runtime nor its libraries. ``tests/drivers/ros_locobot/test_ros_guard_package.py`` checks that
the list is complete and that nothing in it needs more than Python 3.8, PyYAML and rospy or rclpy. With a YAML file it
runs the guard that the file describes, on ROS 1 or ROS 2; without, roslaunch's node.
"""

import argparse
import sys
import tempfile
import zipapp
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

MODULES = (
    "drivers/ros/bases.py",
    "drivers/ros/connection/errors.py",
    "drivers/ros/connection/received.py",
    "drivers/ros/connection/waiting.py",
    "drivers/ros/guard/e_stop_latch.py",
    "drivers/ros/guard/logic.py",
    "drivers/ros/guard/node.py",
    "drivers/ros/guard/options.py",
    "drivers/ros/guard/parameters.py",
    "drivers/ros/guard/program.py",
    "drivers/ros/guard/safety_levels.py",
    "drivers/ros/guard/safety_sources.py",
    "drivers/ros/guard/sensors.py",
    "drivers/ros/safety_fields.py",
    "drivers/ros/topics.py",
    "drivers/ros2/guard/node.py",
    "drivers/ros2/node.py",
    "drivers/ros_locobot/connection/master.py",
    "drivers/ros_locobot/guard/__main__.py",
    "drivers/ros_locobot/guard/master_monitor.py",
    "drivers/ros_locobot/guard/node.py",
    "drivers/ros_locobot/guard/options.py",
    "drivers/ros_locobot/reading.py",
    "robot_runtime/common/clock.py",
    "robot_runtime/errors.py",
    "robot_runtime/hal/wheels.py",
    "robot_runtime/safety/guard.py",
    "robot_runtime/safety/guarded_wheels.py",
)
"""Everything that the guard imports, except for the packages' ``__init__.py``, which import more; theirs are empty."""


MAIN = """import sys

if any(argument.endswith((".yaml", ".yml")) for argument in sys.argv[1:]):
    from drivers.ros.guard.program import main

    sys.exit(main(sys.argv[1:]))
import drivers.ros_locobot.guard.__main__
"""


def build(target: Path, python: str = "/usr/bin/env python3") -> None:
    """Write the program.

    Args:
        target: path of the program.
        python: interpreter for its first line.
    """
    missing = [name for name in MODULES if not (ROOT / name).is_file()]
    if missing:
        sys.exit(f"{ROOT / missing[0]} does not exist: link this folder from a clone of the repository, do not copy it")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in MODULES:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((ROOT / name).read_bytes())
            for package in list(Path(name).parents)[:-1]:
                (Path(folder) / package / "__init__.py").touch()
        main = Path(folder) / "__main__.py"
        main.write_text(MAIN, encoding="utf-8")
        zipapp.create_archive(folder, target, interpreter=python)
    target.chmod(0o755)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, metavar="FILE")
    parser.add_argument("--python", default="/usr/bin/env python3", help="interpreter for the first line")
    arguments = parser.parse_args()
    build(arguments.target, arguments.python)
