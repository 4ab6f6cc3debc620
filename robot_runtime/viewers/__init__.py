"""Viewers of logs, whole or being written: Rerun and Foxglove."""
