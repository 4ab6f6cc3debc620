"""AprilTags: where a camera is by tags on the walls, where a robot is by a tag on it. See README.md."""
