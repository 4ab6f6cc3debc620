"""Benchmark of motion: ``bench motion``."""
