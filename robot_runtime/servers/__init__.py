"""The robot at the other end of somebody else's client, and a policy at the other end of a robot's.

=====================  ===============================================================================================
``robothor``           the RoboTHOR robot protocol, which ``ai2thor.robot_controller.Controller`` speaks
``robothor_messages``  what goes over its wire
``policy``             a policy for robots elsewhere; ``policies.remote`` has the protocol and the robot's end
``exchange``           requests of many threads, one at a time, to the one thread that owns the robot
``http``               the door: token, limits of size and time, nothing but ``POST /step``
=====================  ===============================================================================================
"""
