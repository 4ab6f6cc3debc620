"""PointNav: task, measures, episode formats."""
