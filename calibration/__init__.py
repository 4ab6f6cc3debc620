"""Calibrations: one file each; see README.md."""
