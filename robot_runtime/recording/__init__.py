"""The log of an episode: MCAP writer, reader, recovery."""
