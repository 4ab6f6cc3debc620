"""Reconstruction of scenes from logs: map, mesh, alignment of scans, detection of changes."""
