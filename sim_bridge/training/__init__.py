"""Training the policy that ships: ``python -m sim_bridge.training.pointnav``. The one place that imports torch."""
