"""``peeklock explore``: in the terminal, and as a page of one file."""
