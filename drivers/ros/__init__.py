"""A robot behind ROS topics, of either generation: everything but the session and its messages."""
