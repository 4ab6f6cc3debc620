"""Baseline agents of the papers, and oracles that know the map."""
