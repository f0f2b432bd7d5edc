"""Changes that mutate.py makes and that make no difference, each with the reason."""

_IMPLICIT = "a function that ends without a return returns None all the same"
_PROTOCOL = "the body of a Protocol is never run; each store has its own default, which is tested"
_LENGTH = "any number of random bytes that is not small will do"

EQUIVALENT: dict[str, str] = {
    "clock.py RealClock.wait_ms: `1000` -> `1001`": "a tenth of a percent is below what a sleep keeps",
    "clock.py RealClock.wait_ms: `n > 0` -> `n >= 0`": "to sleep for no time is not to sleep",
    "driver.py Driver._carry_out: drop `return None`": _IMPLICIT,
    "driver.py HandlerRun._advance: drop `return None`": _IMPLICIT,
    "stores/faults.py FaultyStore._next_fault: `self._random.random() < self._chance`"
    " -> `self._random.random() <= self._chance`": "a random number in [0, 1) is not exactly the chance",
    "stores/memory.py MemoryStore.__init__: `8` -> `9`": _LENGTH,
    "stores/memory.py MemoryStore.fetch: drop `return None`": _IMPLICIT,
    "policy.py Policy.missing_handler_delay_ms: `62` -> `63`": "both are beyond any limit in milliseconds",
    "stores/sqlite.py SqliteStore.__init__: `8` -> `9`": _LENGTH,
    "store.py Store.abandon: `0` -> `1`": _PROTOCOL,
    "store.py Store.abandon: `False` -> `True`": _PROTOCOL,
    "store.py Store.enqueue: `0` -> `1`": _PROTOCOL,
}
