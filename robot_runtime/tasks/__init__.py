"""Tasks: one file each, and the schema that their YAML presets follow."""
