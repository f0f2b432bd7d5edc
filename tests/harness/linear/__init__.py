"""Concurrent histories of a store, judged item by item by linearizability."""
