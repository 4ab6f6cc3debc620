"""Scenes: made, imported and built into physics."""
