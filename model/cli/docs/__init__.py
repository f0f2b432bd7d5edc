"""``peeklock docs``: the generated parts of the documentation."""
