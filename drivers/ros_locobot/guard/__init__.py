"""The guard node that runs beside the base and zeroes the wheels when the runtime is silent."""
