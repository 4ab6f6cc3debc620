"""The HTML page of a replay."""
