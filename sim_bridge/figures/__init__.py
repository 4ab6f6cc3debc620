"""Figures of the documentation that are drawn from simulated sensors."""
