"""Benchmarks of the runtime, one module per ``robot-runtime bench`` table."""
