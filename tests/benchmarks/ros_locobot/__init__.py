"""Benchmarks over a real roscore: ``robot-runtime bench ros``."""
