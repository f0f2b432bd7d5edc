"""The bounded world for other tools: Promela for Spin, TLA+ for TLC."""
