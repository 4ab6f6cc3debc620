"""Localizers over ROS 1: odometry, tf, AMCL and motion capture."""
