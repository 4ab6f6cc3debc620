"""The simulated LoCoBot as its real ones appear in ROS 1: same topics, types, rates, frames and timing."""
