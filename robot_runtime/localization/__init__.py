"""What every source of poses shares."""
