"""``peeklock conform`` and ``peeklock trace``: real stores, workers and runs."""
