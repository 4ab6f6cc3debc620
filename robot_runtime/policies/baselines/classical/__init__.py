"""The classical agent: depth into an occupancy grid, fast marching on it, frontiers where the goal is unknown."""
