"""Closed-loop motion: discrete actions, continuous commands, and the law that drives their legs."""
