"""Robots from YAML: the loader, calibration files, and the corrections that calibrations carry."""
