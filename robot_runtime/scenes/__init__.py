"""Scenes: occupancy map, geodesic distances, rooms, objects and landmarks."""
