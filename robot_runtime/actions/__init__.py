"""Actions of the simulators: discrete ones by name, and continuous commands in SI units."""
