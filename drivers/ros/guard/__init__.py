"""The guard next to the base: it stops the wheels when the commander is silent or a safety sensor is active."""
