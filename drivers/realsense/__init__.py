"""Intel RealSense D400 cameras: live, from recordings, and emulated on a simulated robot. See README.md."""
