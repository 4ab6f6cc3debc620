"""Version of this package, for everything that writes it into a file; ``pyproject.toml`` reads it from here."""

VERSION = "0.2.0"
