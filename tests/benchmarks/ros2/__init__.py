"""Benchmarks of robots on ROS 2."""
