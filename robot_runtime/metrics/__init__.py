"""Metrics of an episode, computed live by the environment and again from logs."""
