"""Test vectors: they show all that can be reached, the reference stores answer as they say, and faulty ones do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, fields
from reference import ERRORS, ReferenceAdapter, memory_store
from schema import errors
from specified_store import SpecifiedStore

import peeklock.impl as impl
from peeklock.harness.adapter.interface import Delivery, PermanentError
from peeklock.harness.vectors.files import Vector
from peeklock.harness.vectors.replay import VectorsError, read_vectors, replay
from peeklock.model.vectors.cover import MOST_CALLS
from peeklock.model.vectors.files import Vectors, file_name, vectors_of
from peeklock.spec.notation.actions import Call
from peeklock.spec.reading.timed_store import Fault
from peeklock.spec.variants.capabilities import (
    STANDARD,
    Capabilities,
    CompletionWrite,
    Expired,
    Order,
    Renewal,
    UnknownToken,
)

ROOT = Path(__file__).parent.parent.parent
COMMITTED = ROOT / "docs" / "vectors"
SCHEMA = json.loads((ROOT / "docs" / "vectors.schema.json").read_text(encoding="utf-8"))
VECTORS = read_vectors(COMMITTED)

OTHERS = (
    Capabilities(renew=False),
    Capabilities(renewal=Renewal.EXTENDS),
    Capabilities(abandon=False, abandon_ignoring_attempt=False),
    Capabilities(abandon_delay=False, enqueue_delay=False),
    Capabilities(order=Order.NONE),
    Capabilities(order=Order.NONE, cancel=False),
    Capabilities(completion=CompletionWrite.SEPARATE),
    Capabilities(completion=CompletionWrite.NONE),
    Capabilities(ack_after_expiry=Expired.ACCEPTED, abandon_after_expiry=Expired.REFUSED),
    Capabilities(abandon_unknown_token=UnknownToken.SILENT),
    Capabilities(error_classes=False),
    Capabilities(attempt_counts=False),
)


def differing(capabilities: Capabilities) -> str:
    """In what a store differs from the standard contract."""
    pairs = ((f.name, getattr(capabilities, f.name)) for f in fields(Capabilities))
    named = (f"{n}={getattr(v, 'value', v)}" for n, v in pairs if v != getattr(STANDARD, n))
    return ", ".join(named) or "standard"


def written(capabilities: Capabilities, folder: Path) -> tuple[Vector, ...]:
    for name, text in vectors_of(capabilities).texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return read_vectors(folder)


@pytest.fixture(scope="module")
def standard() -> Vectors:
    return vectors_of(STANDARD)


# What they show


def test_every_kind_of_state_that_can_be_reached_is_shown(standard: Vectors) -> None:
    assert standard.missed == ()
    assert (len(standard.vectors), len(standard.kinds)) == (123, 359)
    assert sum(len(v.steps) for v in standard.vectors) == 725
    assert Counter(kind.call for kind in standard.shown) == {
        Call.ENQUEUE: 14,
        Call.FETCH: 65,
        Call.RENEW: 43,
        Call.ACK: 38,
        Call.CANCELLATION_ACK: 38,
        Call.ABANDON: 47,
        Call.ABANDON_IGNORING_ATTEMPT: 47,
        Call.CANCEL: 67,
    }


def test_no_vector_is_long_and_none_could_be_left_out(standard: Vectors) -> None:
    assert max(len(v.steps) for v in standard.vectors) <= MOST_CALLS
    for vector in standard.vectors:
        others = {kind for other in standard.vectors if other is not vector for kind in other.shown}
        assert not vector.shown <= others, vector.name


def test_names_are_told_once(standard: Vectors) -> None:
    assert len({v.name for v in standard.vectors}) == len(standard.vectors)


@pytest.mark.parametrize("capabilities", OTHERS, ids=differing)
def test_every_kind_is_shown_of_other_stores_too(capabilities: Capabilities) -> None:
    found = vectors_of(capabilities)
    assert found.vectors
    assert found.missed == ()
    assert max(len(v.steps) for v in found.vectors) <= MOST_CALLS
    called = {kind.call for kind in found.shown}
    assert called == set(capabilities.calls)


# The files


def test_the_committed_files_are_what_the_command_writes(standard: Vectors) -> None:
    assert {p.name: p.read_text(encoding="utf-8") for p in COMMITTED.iterdir()} == standard.texts


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_files_are_the_same_to_the_byte_whatever_the_order_of_hashes(
    seed: str, tmp_path: Path, standard: Vectors
) -> None:
    folder = tmp_path / "vectors"
    command = [sys.executable, "-m", "peeklock.cli.main", "vectors", str(folder)]
    subprocess.run(
        command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, cwd=ROOT, check=True
    )
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        name: text.encode() for name, text in standard.texts.items()
    }


@pytest.mark.parametrize("capabilities", [STANDARD, *OTHERS], ids=differing)
def test_files_are_as_the_schema_says(capabilities: Capabilities) -> None:
    for name, text in vectors_of(capabilities).texts.items():
        data = json.loads(text)
        assert list(errors(data, SCHEMA, SCHEMA)) == [], name
        assert Capabilities.declared(data["capabilities"]) == capabilities


def test_the_schema_refuses_what_is_not_so() -> None:
    data = json.loads((COMMITTED / file_name(Call.ACK)).read_text(encoding="utf-8"))
    data["vectors"][0]["steps"][0]["answer"] = "perhaps"
    assert list(errors(data, SCHEMA, SCHEMA)) == ["$.vectors[0].steps[0].answer is 'perhaps'"]


# Replayed on stores that keep their contract


def sqlite_store(path: Path) -> tuple[ReferenceAdapter, impl.SqliteStore]:
    clock = impl.VirtualClock()
    store = impl.SqliteStore(path, clock)
    return ReferenceAdapter(store, clock), store


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.name)
def test_the_reference_stores_answer_as_expected(vector: Vector, tmp_path: Path) -> None:
    assert replay(vector, memory_store(), **ERRORS) is None
    adapter, store = sqlite_store(tmp_path / "store.db")
    try:
        assert replay(vector, adapter, **ERRORS) is None
    finally:
        store.close()


@pytest.mark.parametrize("capabilities", [STANDARD, *OTHERS], ids=differing)
def test_a_store_takes_the_vectors_of_its_capabilities(capabilities: Capabilities, tmp_path: Path) -> None:
    vectors = written(capabilities, tmp_path)
    assert [m for v in vectors if (m := replay(v, SpecifiedStore(capabilities)))] == []


def test_a_store_that_can_be_told_to_fail_is_told() -> None:
    faults = Counter(step.fault for vector in VECTORS for step in vector.steps)
    assert faults[Fault.BEFORE_EFFECT.value] > 0 < faults[Fault.AFTER_EFFECT.value]
    for vector in VECTORS:
        assert replay(vector, SpecifiedStore(STANDARD, injects=True), injects_faults=True) is None


@pytest.mark.parametrize("capabilities", OTHERS, ids=differing)
def test_needs_name_every_capability_that_matters(capabilities: Capabilities) -> None:
    """What is for a store as well is answered by it as expected; with what it lacks left out."""
    seen = evolve(capabilities, attempt_counts=True)
    taken = [v for v in VECTORS if v.is_for(seen)]
    assert 0 < len(taken) <= len(VECTORS)
    for vector in taken:
        if capabilities.completion is CompletionWrite.NONE:
            vector = evolve(vector, completions=None)
        assert replay(vector, SpecifiedStore(seen)) is None, vector.name


def test_what_differs_by_order_is_said_to_need_it() -> None:
    needing = [v for v in VECTORS if v.needs.get("order") == "fifo"]
    assert needing
    assert not any(v.is_for(Capabilities(order=Order.NONE)) for v in needing)
    assert all(v.is_for(STANDARD) for v in VECTORS)


# Replayed on stores that do not


def faulty(method: str, make: Callable[[SpecifiedStore, Any], Any]) -> SpecifiedStore:
    store = SpecifiedStore(STANDARD)
    setattr(store, method, make(store, getattr(store, method)))
    return store


def ack_without_completion(store: SpecifiedStore, right: Any) -> Any:
    return lambda token, completion: right(token, None)


def ack_repeated_is_ok(store: SpecifiedStore, right: Any) -> Any:
    done = set[str]()

    def ack(token: str, completion: str | None) -> None:
        if token not in done:
            right(token, completion)
            done.add(token)

    return ack


def ack_enqueues_though_refused(store: SpecifiedStore, right: Any) -> Any:
    def ack(token: str, completion: str | None) -> None:
        try:
            right(token, completion)
        except PermanentError:
            store.done.append(("i1", "again"))
            raise

    return ack


def renewal_that_does_nothing(store: SpecifiedStore, right: Any) -> Any:
    def renew(token: str, extend_for_ms: int) -> None:
        before = store.moment
        right(token, extend_for_ms)
        store.moment = before

    return renew


def abandon_without_delay(store: SpecifiedStore, right: Any) -> Any:
    return lambda token, delay_ms, ignore_attempt: right(token, 0, ignore_attempt)


def abandon_that_counts(store: SpecifiedStore, right: Any) -> Any:
    return lambda token, delay_ms, ignore_attempt: right(token, delay_ms, False)


def lock_a_millisecond_long(store: SpecifiedStore, right: Any) -> Any:
    return lambda lock_timeout_ms: right(lock_timeout_ms + 1)


def cancel_of_one(store: SpecifiedStore, right: Any) -> Any:
    return lambda items: right(items[:1])


def delay_forgotten(store: SpecifiedStore, right: Any) -> Any:
    return lambda item, delay_ms: right(item, 0)


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("ack", ack_without_completion),
        ("ack", ack_repeated_is_ok),
        ("ack", ack_enqueues_though_refused),
        ("renew", renewal_that_does_nothing),
        ("abandon", abandon_without_delay),
        ("abandon", abandon_that_counts),
        ("fetch", lock_a_millisecond_long),
        ("cancel", cancel_of_one),
        ("enqueue", delay_forgotten),
    ],
)
def test_a_faulty_store_fails_a_vector(method: str, fault: Callable[[SpecifiedStore, Any], Any]) -> None:
    found = [m for v in VECTORS if (m := replay(v, faulty(method, fault)))]
    assert found
    assert all("expected" in str(m) and "got" in str(m) for m in found)


def test_a_mismatch_says_where_what_was_expected_and_what_there_was() -> None:
    def found() -> Iterator[str]:
        for vector in VECTORS:
            mismatch = replay(vector, faulty("ack", ack_repeated_is_ok))
            if mismatch is not None:
                yield str(mismatch)

    assert (
        "ack -> retryable error after effect: the current token; the item is locked\n"
        "  step 4 of 4, ack at 0 ms (the token of the ack; the item was acked): expected permanent error, got ok"
    ) in list(found())


def test_a_token_that_is_issued_twice_is_a_mismatch() -> None:
    def same(store: SpecifiedStore, right: Any) -> Any:
        def fetch(lock_timeout_ms: int) -> Delivery | None:
            got = right(lock_timeout_ms)
            return None if got is None else evolve(got, token=got.item)

        return fetch

    store = faulty("fetch", same)
    vector = next(v for v in VECTORS if [s.gives and s.gives.get("item") for s in v.steps].count("i1") == 2)
    store.tokens["i1"] = (0, 1)
    assert "a token that was never issued before" in str(replay(vector, store))


# Files that are not as they should be


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "no JSON"),
        ("[]", "peeklock_vectors is not 1"),
        ('{"peeklock_vectors": 2}', "peeklock_vectors is not 1"),
        ('{"peeklock_vectors": 1}', "'capabilities' is missing"),
        (
            '{"peeklock_vectors": 1, "capabilities": {"order": "lifo"}}',
            "order is 'lifo'; allowed: fifo, none",
        ),
        ('{"peeklock_vectors": 1, "capabilities": {"colour": true}}', "unknown capability 'colour'"),
        (
            '{"peeklock_vectors": 1, "capabilities": {}, "vectors": 3}',
            "allowed: what docs/vectors.schema.json has",
        ),
        ('{"peeklock_vectors": 1, "capabilities": {}, "vectors": []}', "no vectors in it"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_one_line(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "store-ack.json").write_text(text, encoding="utf-8")
    with pytest.raises(VectorsError) as error:
        read_vectors(tmp_path)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)
