"""Servers: the robot for clients of other software, and a policy for robots elsewhere.

=====================  ===============================================================================================
``robothor``           server of the RoboTHOR robot protocol, for ``ai2thor.robot_controller.Controller``
``robothor_messages``  messages of that protocol
``policy``             server of a policy; ``policies.remote`` has the protocol and the robot's end
``request_queue``      requests of many threads, one at a time, for the thread that controls the robot
``request_server``     HTTP server with a token and limits of size and time; ``POST /step`` only
=====================  ===============================================================================================
"""
