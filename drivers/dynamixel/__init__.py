"""Pan-tilt of two Dynamixel servos on a serial bus, without ROS. See README.md."""
