"""Long work on many items: in this process, in several, or on a Ray cluster, with the same results in any case."""
