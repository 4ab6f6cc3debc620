"""A real LoCoBot without ROS: the parts that its file names, on this computer's clock."""
