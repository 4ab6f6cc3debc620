"""Set-up of a robot's devices: serial ports, udev rules, live readings, and their doctor."""
