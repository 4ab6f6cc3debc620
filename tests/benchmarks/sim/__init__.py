"""Benchmarks of the simulator: ``robot-runtime bench sim``, ``replay`` and ``gap``."""
