"""Trace files: reading, judging and recording them."""
