"""``peeklock diff``."""
