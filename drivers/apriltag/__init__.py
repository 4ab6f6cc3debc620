"""AprilTag localization: a robot's camera by tags on the walls, a robot by a tag on it. See README.md."""
