"""``python -m robot_runtime`` is ``robot-runtime``."""

from robot_runtime.cli.entry import main

main()
