"""The runtime that carries embodied-AI policies out of the simulator and onto a real robot."""

__version__ = "0.1.0"
