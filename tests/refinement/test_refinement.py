"""The reference implementation refines the specification: some state of it explains whatever is done."""

from __future__ import annotations

import enum

import pytest
from attrs import fields
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from machine import IMPLEMENTED, machine
from store_machine import store_machine

from peeklock.spec.law.policy import POLICIES

EXAMPLES = {False: 150, True: 30}
"""Runs on each kind of store; a file costs more than memory."""


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "sqlite"])
@pytest.mark.parametrize("policy", ["before", "retry", "hardened"])
def test_workers_and_store_do_only_what_the_specification_allows(policy: str, on_disk: bool) -> None:
    """Interleaved workers, faults, clock steps, cancellations, crashes and shutdowns, in any order."""
    run_state_machine_as_test(machine(policy, on_disk), settings=_settings(on_disk))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "sqlite"])
def test_a_store_answers_every_call_as_its_contract_says(on_disk: bool) -> None:
    """Any call with any token that was ever given, at any time."""
    run_state_machine_as_test(store_machine(on_disk), settings=_settings(on_disk))  # type: ignore[no-untyped-call]


def _settings(on_disk: bool) -> settings:
    return settings(
        max_examples=EXAMPLES[on_disk],
        stateful_step_count=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


@pytest.mark.parametrize("policy", ["before", "retry", "hardened"])
def test_the_two_records_of_a_policy_say_the_same(policy: str) -> None:
    """The implementation has its own record, written by hand; field by field it is the specification's."""
    ours, theirs = POLICIES[policy], IMPLEMENTED[policy]
    for field in fields(type(theirs)):
        if field.name == "renewal_retry_ms":  # how often to try again is the implementation's own affair
            continue
        stated = getattr(ours, field.name)
        assert getattr(theirs, field.name) == (stated.value if isinstance(stated, enum.Enum) else stated), (
            field.name
        )
