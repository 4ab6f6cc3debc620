"""Preflight: comparison of a robot, as calibrated and as measured, with the one that a policy was trained on."""
