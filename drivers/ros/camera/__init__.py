"""The RGB-D camera over ROS 1: driver, pairing of color and depth, message conversion."""
