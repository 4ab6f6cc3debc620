"""Calibrations: one file each. Empty until the cameras arrive; see README.md."""
