"""The protocol, written once: how a worker settles work items that it took from a store under a lock.

``law`` is what a maintainer of a queue reads and changes, in this order: :mod:`~peeklock.spec.law.state` (what there
is), :mod:`~peeklock.spec.law.faults` (what may go wrong), :mod:`~peeklock.spec.law.store` (what the store does),
:mod:`~peeklock.spec.law.worker` (what the worker does), :mod:`~peeklock.spec.law.ack_sequence` (how it settles),
:mod:`~peeklock.spec.law.environment` (what else happens), :mod:`~peeklock.spec.law.policy` (three ways to settle), and
:mod:`~peeklock.spec.law.life` (the states of a delivery).

Everything else reads the law. ``notation`` holds the terms and actions that it is written in, ``promises`` what it must
keep, and ``variants`` the stores and clients that differ from it. :mod:`~peeklock.spec.compose` puts the pieces
together for the search, the proofs and the monitor; ``reading`` holds what these readers share.
"""
