"""What of the specification a check of a store reaches: all that such a store can show; the rest is listed with why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve, fields
from hypothesis import settings
from specified_store import SpecifiedStore

from peeklock.harness.failure.report import Report
from peeklock.harness.run.steps import Step
from peeklock.harness.store.check import check_store
from peeklock.spec.notation.actions import Call
from peeklock.spec.reading.timed_store import honest_actions
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, CompletionWrite, Order, UnknownToken

FEW = settings(max_examples=1, database=None)


def others() -> Iterator[Capabilities]:
    """The standard store, those that differ in one capability, and some that differ in several."""
    yield STANDARD
    for one in fields(Capabilities):
        kind = Capabilities.named(one.name)
        values: tuple[Any, ...] = (False, True) if kind is bool else tuple(kind)  # type: ignore[arg-type]
        if one.name != "virtual_clock":
            yield from (evolve(STANDARD, **{one.name: v}) for v in values if v != one.default)
    yield Capabilities(error_classes=False, abandon_unknown_token=UnknownToken.SILENT, order=Order.NONE)
    yield Capabilities(renew=False, abandon=False, cancel=False, completion=CompletionWrite.NONE)


def named(capabilities: Capabilities) -> str:
    return (
        ", ".join(
            f"{f.name}={getattr(value, 'value', value)}"
            for f in fields(Capabilities)
            if (value := getattr(capabilities, f.name)) != f.default
        )
        or "standard"
    )


def checked(capabilities: Capabilities) -> Report:
    injects = capabilities.fault_injection
    return check_store(lambda: SpecifiedStore(capabilities, injects), capabilities, seed=1, settings=FEW)


@pytest.mark.parametrize("capabilities", list(others()), ids=named)
def test_every_answer_of_every_call_is_reached_that_can_be(capabilities: Capabilities) -> None:
    coverage = checked(capabilities).coverage
    assert coverage.never == ()
    calls = {str(a.label) for a in honest_actions(capabilities) if a.label.call is not None}
    assert calls == set(coverage.reached) | (calls & set(coverage.left_out))
    assert not set(coverage.reached) & set(coverage.left_out)
    lacking = {call.value for call in Call if call not in capabilities.calls}
    assert lacking <= set(coverage.left_out)


@pytest.mark.parametrize(
    ("capabilities", "what"),
    [
        (Capabilities(enqueue_delay=False), "enqueue with a delay"),
        (Capabilities(abandon_delay=False), "abandon with a delay"),
        (Capabilities(completion=CompletionWrite.NONE), "completions"),
        (Capabilities(attempt_counts=False), "attempt counts"),
        (Capabilities(error_classes=False), "ack -> permanent error, although it took effect"),
    ],
    ids=str,
)
def test_what_cannot_be_tried_is_listed(capabilities: Capabilities, what: str) -> None:
    report = checked(capabilities)
    assert what in report.coverage.left_out
    assert f"-  {what}: " in str(report)


def test_an_answer_that_was_never_seen_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    short = (Step(Call.ENQUEUE, items=("i1",)), Step(Call.FETCH, ms=1_000))
    monkeypatch.setattr("peeklock.harness.store.check.corners", lambda *_: (short,))
    report = checked(STANDARD)
    assert set(report.coverage.reached) == {"enqueue -> ok", "fetch -> ok"}
    assert "ack -> permanent error" in report.coverage.never
    assert "never seen: ack -> permanent error" in report.line()
