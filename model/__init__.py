"""The search: every reachable state of a bounded world, and the shortest way to a broken promise.

In reading order: :mod:`~peeklock.model.world` (what is bounded), :mod:`~peeklock.model.records` and
:mod:`~peeklock.model.tables` (what a worker and an item do together, tabulated), :mod:`~peeklock.model.search`
(whole frontiers at a time), :mod:`~peeklock.model.symmetry`, :mod:`~peeklock.model.traces` and
:mod:`~peeklock.model.verdicts`.
"""
