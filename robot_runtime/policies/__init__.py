"""Policies and agents: what turns observations into actions."""
