"""LoCoBots that speak ROS 1: PyRobot's (Kobuki or Create 2) and Interbotix's, behind ``robot_runtime.hal``."""
