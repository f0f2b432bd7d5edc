"""Variants: stores that differ from the contract, by declaration or by mistake, and clients that follow no policy."""
