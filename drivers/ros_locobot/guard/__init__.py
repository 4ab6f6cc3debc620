"""The guard node next to the base: it stops the wheels when the runtime is silent or a safety sensor is active."""
