"""The simulated LoCoBot: base, head, camera, localizer, battery and its driver."""
