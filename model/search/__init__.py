"""The search: every reachable state of a bounded world, verdicts, and the shortest way to a broken promise."""
