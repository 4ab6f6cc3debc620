"""The commands ``robot-runtime export bag`` and ``logs import``."""
