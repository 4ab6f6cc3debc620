"""The simulated LoCoBot as a ROS 1 node: topics, types, rates, frames and timing of the real robots."""
