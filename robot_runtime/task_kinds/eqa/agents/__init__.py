"""Agents of embodied question answering."""
