"""From camera frames to the image that a policy was trained on."""
