"""Marvelmind ultrasonic beacons: poses from a hedgehog, or a pair of them, on the robot. See README.md."""
