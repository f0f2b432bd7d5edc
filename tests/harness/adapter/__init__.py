"""The interface that a store implements, and careful calls of it."""
