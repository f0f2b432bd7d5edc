"""A run as a story: lanes for a terminal, Markdown, and a page."""
