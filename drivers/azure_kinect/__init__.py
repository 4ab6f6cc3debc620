"""Azure Kinect: live through the Kinect SDK, its recordings, and an emulated one. See README.md."""
