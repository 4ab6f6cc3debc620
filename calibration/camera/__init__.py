"""Calibrations of the camera: lens, mount, depth, latency and the servo that tilts it."""
