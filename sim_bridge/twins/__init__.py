"""Simulated twins of real places: scenes from logs, scans brought into the robot's map, and what has changed since."""
