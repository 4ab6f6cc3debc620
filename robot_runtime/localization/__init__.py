"""From pose measurements to the pose at an instant."""
