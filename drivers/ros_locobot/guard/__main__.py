"""The guard node as a program: ``python -m drivers.ros_locobot.guard``, and the file that ``ros_ws`` builds."""

from drivers.ros_locobot.guard.node import main

main()
