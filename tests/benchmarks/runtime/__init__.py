"""Benchmarks of the runtime, one module per table."""
