"""Benchmark of motion: ``robot-runtime bench motion``."""
