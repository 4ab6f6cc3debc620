"""Placement of the robot at the start of an episode: by simulation, by hand, or by driving."""
