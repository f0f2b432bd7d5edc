"""Walks through the state space, step by step."""
