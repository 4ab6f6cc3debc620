"""AreaGoal: task, measures, episode formats."""
