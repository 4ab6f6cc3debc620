"""Rearrangement: episode objects, goals, sessions, and the phases of an episode."""
