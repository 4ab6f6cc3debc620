"""A simulator fitted to a robot from its logs alone: ``robot-runtime fit``."""
