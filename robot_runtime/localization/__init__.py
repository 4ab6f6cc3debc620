"""Pose estimation: fusion of odometry with absolute sources, relocalization, alignment of frames, offline smoothing."""
