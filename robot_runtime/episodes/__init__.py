"""Datasets: one file per format, all read into the same Episode."""
