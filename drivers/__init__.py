"""Drivers: one folder per device."""
