"""Kobuki, the base of most LoCoBots, over its serial port."""
