"""``peeklock check`` and ``peeklock explain``."""
