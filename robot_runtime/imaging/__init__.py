"""Conversion of camera frames to the images that a policy was trained on."""
