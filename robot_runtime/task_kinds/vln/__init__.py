"""Vision-and-language navigation: task, measures, episode formats."""
