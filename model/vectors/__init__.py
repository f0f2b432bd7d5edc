"""Test vectors of a store: few short runs that cover everything it can show."""
