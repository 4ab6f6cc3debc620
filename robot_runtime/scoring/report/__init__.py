"""Reports of logged episodes: HTML pages, terminal tables, files for other programs."""
