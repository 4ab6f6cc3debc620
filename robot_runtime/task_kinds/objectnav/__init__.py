"""ObjectNav: task, measures, episode formats."""
