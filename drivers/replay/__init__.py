"""A camera that plays the frames of a log."""
