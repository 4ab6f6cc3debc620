"""Closed-loop motion: discrete actions, continuous commands, and their velocity profile."""
