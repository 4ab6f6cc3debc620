"""Parallel work over processes or a Ray cluster, with results in order and resumable."""
