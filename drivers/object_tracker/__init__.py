"""Poses of objects from outside: motion capture, markers, or a person after the run. See README.md."""
