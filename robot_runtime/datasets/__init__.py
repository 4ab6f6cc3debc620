"""Datasets of episodes, all read into the same Episode."""
