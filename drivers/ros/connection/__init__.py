"""The connection to a ROS network: what a session offers, clock, caches, sources and errors."""
