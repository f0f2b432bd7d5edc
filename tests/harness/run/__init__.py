"""Runs of a store as data, driven and judged call by call."""
