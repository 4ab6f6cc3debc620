"""Metrics of one episode, computed live by the environment and again from logs."""
