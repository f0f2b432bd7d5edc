"""The search: every reachable state of a bounded world, and the shortest way to a broken promise.

``search`` in reading order: :mod:`~peeklock.model.search.world` (what is bounded),
:mod:`~peeklock.model.search.records` and :mod:`~peeklock.model.search.tables` (what a worker and an item do together),
:mod:`~peeklock.model.search.engine` (whole frontiers at a time), :mod:`~peeklock.model.search.traces` and
:mod:`~peeklock.model.search.verdicts`. The other packages use it: ``review``, ``mutants``, ``vectors``, ``export`` and
``explore``. ``cli``, the command line, lives here too and is imported as ``peeklock.cli``.
"""
