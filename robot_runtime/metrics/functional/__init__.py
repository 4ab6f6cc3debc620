"""Metrics as pure functions of numbers and paths."""
