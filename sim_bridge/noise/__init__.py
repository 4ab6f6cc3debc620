"""How real sensors and motors depart from exact ones; one file per model, each with its source."""
