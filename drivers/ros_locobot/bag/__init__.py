"""ROS 1 bags from logs, and logs from bags, without ROS: ``robot-runtime export bag`` and ``import``."""
