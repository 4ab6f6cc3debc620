"""Campaigns: a test plan that is run, resumed, stopped by its own rule, and verified by others from its files."""
