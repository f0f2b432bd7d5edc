"""Test vectors, read and replayed on a store."""
