"""The physical world in MuJoCo: scene model, movable objects, floor and tags."""
