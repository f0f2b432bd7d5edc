"""The harness: hold what a real store or worker was seen to do against the specification.

:mod:`~peeklock.harness.observation` says what can be seen, :mod:`~peeklock.harness.monitor` keeps the set of
states of the specification that explain it, and :mod:`~peeklock.harness.tracefile` reads recorded runs.
"""
