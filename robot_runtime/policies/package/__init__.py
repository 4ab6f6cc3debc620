"""Policy packages: a folder or zip with ``policy.yaml``, a network, and ``golden.npz`` that proves it computes."""
