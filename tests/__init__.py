"""Tests, and the benchmarks that they share their made logs and rooms with."""
