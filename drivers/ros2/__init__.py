"""Robots that speak ROS 2: Create 3, TurtleBot 4, Interbotix' LoCoBot, any base of Twist and Odometry."""
