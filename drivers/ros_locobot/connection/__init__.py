"""The connection to a ROS 1 master: node session, subscriptions, clock and errors."""
