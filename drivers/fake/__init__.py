"""A robot without physics that does what a script tells it, faults included."""
