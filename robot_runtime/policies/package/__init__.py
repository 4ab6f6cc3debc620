"""Policy packages: a folder or zip with ``policy.yaml``, a network, and the recorded rollout ``golden.npz``."""
