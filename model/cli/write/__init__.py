"""``peeklock vectors`` and ``peeklock export``: files for other tools."""
