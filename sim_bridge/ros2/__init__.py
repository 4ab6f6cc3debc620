"""The simulated robot as a ROS 2 node; everything but the node itself is in ``sim_bridge.ros``."""
