"""A failed run as data: reproduced, explained, reported and written to files."""
