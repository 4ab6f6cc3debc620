"""Benchmarks: ``python -m tests.benchmarks NAME``, from the repository's root."""
