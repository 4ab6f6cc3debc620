"""Simulators that a log can be replayed in: MuJoCo, habitat-sim, AI2-THOR, external agents."""
