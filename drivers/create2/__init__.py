"""iRobot Create 2, the base of LoCoBot-Lite, over its serial port."""
