"""The command line: the one room that may import every other."""
