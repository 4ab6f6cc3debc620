"""The base over ROS 1: its driver and the topics of each robot variant."""
