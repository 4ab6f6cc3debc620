"""Driving by hand: a person as the agent of an episode.

===========  ==========================================================================================================
``inbox``    the action that a person asks for, between the thread that reads a device and the robot's
``keys``     keys to actions, and terminals' bytes to keys
``gamepad``  Linux's input events to actions
``human``    the agent ``human``
===========  ==========================================================================================================
"""
