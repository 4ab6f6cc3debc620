"""Bags of ROS 1 and 2 from logs, and logs from bags, without ROS: ``robot-runtime export bag`` and ``import``."""
