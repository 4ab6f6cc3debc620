"""Comparison of simulated and real episodes: correlation, gap, rank reversals."""
