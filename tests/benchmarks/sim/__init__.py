"""Benchmarks of the simulator: ``bench sim``, ``replay`` and ``gap``."""
