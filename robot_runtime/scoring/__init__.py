"""Scores, tables and reports, from logs alone."""
