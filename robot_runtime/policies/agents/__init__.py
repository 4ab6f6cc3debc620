"""Unmodified agents of other projects, each in its own process; one module per kind of agent."""
