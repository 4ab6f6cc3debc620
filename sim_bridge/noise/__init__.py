"""Error models of sensors and motors; one file per model, each with its source."""
