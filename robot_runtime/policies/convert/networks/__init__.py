"""Definitions of the frameworks' networks in torch, for conversion and measurement.

Their parameters have the names and shapes of published checkpoints, so that a checkpoint loads without the framework
that wrote it. Robots run the exported networks.
"""
