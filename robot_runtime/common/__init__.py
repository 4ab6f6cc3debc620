"""Shared foundations: clock, configuration, geometry, transforms, provenance, console."""
