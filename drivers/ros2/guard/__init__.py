"""The guard on ROS 2. For Python >= 3.8, of the standard library, PyYAML and rclpy."""
