"""Several workers, faults by chance, crashes: whatever happens, every item completes exactly once."""

import random

import pytest

from peeklock.impl import (
    BEFORE,
    HARDENED,
    RETRY,
    Driver,
    FaultyStore,
    Metrics,
    Policy,
    Store,
    VirtualClock,
    Worker,
    WorkItem,
)
from peeklock.impl.stores.faults import PERMANENT, RESPONSE_LOST, RETRYABLE

ITEMS = [f"i{n}" for n in range(4)]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("policy", [BEFORE, RETRY, HARDENED], ids=["before", "retry", "hardened"])
def test_every_item_completes_exactly_once(
    store: Store, clock: VirtualClock, policy: Policy, seed: int
) -> None:
    chance = random.Random(seed)
    metrics = Metrics()
    faulty = FaultyStore(store, chance=0.3, seed=seed, kinds=(RETRYABLE, RESPONSE_LOST, PERMANENT))
    for item_id in ITEMS:
        store.enqueue(WorkItem(item_id, "order", "charge"))

    def new_cycle() -> Driver:
        return Driver(Worker(clock, {"charge": lambda item: item.id}, policy=policy, metrics=metrics), faulty)

    drivers = [new_cycle() for _ in range(3)]
    steps = 0
    while store.rows():
        steps += 1
        assert steps < 20_000
        at = chance.randrange(3)
        if drivers[at].verdict is not None or chance.random() < 0.02:  # done, or it crashes
            drivers[at] = new_cycle()
            clock.advance(chance.randrange(2_000))
        drivers[at].step()

    assert sorted(completion.item_id for completion in store.completions()) == ITEMS
    acked = [call.args[0] for call in faulty.recorded if call.operation == "ack" and call.took_effect]
    assert len(acked) == len(set(acked)) == len(ITEMS)
