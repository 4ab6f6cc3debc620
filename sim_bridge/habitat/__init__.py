"""Habitat's interface over any robot: ``habitat.Env`` and ``habitat.Benchmark``."""
