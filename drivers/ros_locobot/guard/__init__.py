"""The guard node beside the base: it stops the wheels when the runtime is silent or a safety sensor is active."""
