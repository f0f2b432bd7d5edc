"""The law: what the store, the worker and the environment do, and what a policy may choose.

A maintainer who changes the protocol changes a file of this package; everything else reads it.
"""
