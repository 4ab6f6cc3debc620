"""The simulated LoCoBot, its scenes and its sensors."""
