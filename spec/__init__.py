"""The protocol, written once: how a worker settles work items that it took from a store under a lock.

Read it in this order: :mod:`~peeklock.spec.state` (what there is), :mod:`~peeklock.spec.store` (what the store
does), :mod:`~peeklock.spec.worker` (what the worker does), :mod:`~peeklock.spec.environment` (what else happens),
:mod:`~peeklock.spec.policy` (three ways to settle), :mod:`~peeklock.spec.life` and
:mod:`~peeklock.spec.promises` (what is promised). :mod:`~peeklock.spec.protocol` puts the pieces together for its
readers: the search, the proofs, the monitor and the printed tables.
"""
