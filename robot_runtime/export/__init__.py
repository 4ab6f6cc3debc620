"""Logs in the formats of other software: video, LeRobot data sets, tables of steps."""
