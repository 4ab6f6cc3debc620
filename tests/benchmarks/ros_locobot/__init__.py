"""Benchmarks over a real roscore: ``bench ros``."""
