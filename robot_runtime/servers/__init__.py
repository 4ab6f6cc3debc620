"""The robot at the other end of somebody else's client: one module per protocol.

=====================  ===============================================================================================
``robothor``           the RoboTHOR robot protocol, which ``ai2thor.robot_controller.Controller`` speaks
``robothor_messages``  what goes over its wire
``exchange``           requests of many threads, one at a time, to the one thread that owns the robot
``http``               the door: token, limits of size and time, nothing but ``POST /step``
=====================  ===============================================================================================
"""
