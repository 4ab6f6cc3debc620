"""The base over ROS: its driver and its sensors."""
