"""Mutants of the protocol: which small changes of the law no check notices."""
