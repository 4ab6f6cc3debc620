"""Embodied question answering: task, measures, questions, episode format, agents, commands."""
