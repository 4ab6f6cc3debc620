"""Statistics of scores: intervals, hypothesis tests, comparison of policies."""
