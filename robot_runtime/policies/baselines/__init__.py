"""Baseline agents of the papers, and oracles with access to the map."""
