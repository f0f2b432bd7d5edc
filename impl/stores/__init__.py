"""The reference stores, in memory and in SQLite, and a wrapper that injects faults."""
