"""Planning over the actions that a robot has: lattice search, path following, contacts met on the way."""
