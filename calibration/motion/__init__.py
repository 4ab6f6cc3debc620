"""Calibrations of motion: odometry, errors of actions, and the alignment of a localizer with the map."""
