"""Making a script that fails shorter and plainer, as long as it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve, fields

from peeklock.harness.worker.script import DeliveryPlan, Fault, ItemPlan, Script


def shortened(script: Script, still_fails: Callable[[Script], bool], most_tries: int = 400) -> Script:
    """The script with all taken away that its failure does not need; ``most_tries`` bounds the work."""
    tries = 0
    while True:
        for plainer in _plainer(script):
            tries += 1
            if tries > most_tries:
                return script
            if still_fails(plainer):
                script = plainer
                break
        else:
            return script


def _plainer(value: Any, is_field: bool = False) -> Iterator[Any]:
    """Everything that is one step plainer, the plainest first."""
    if isinstance(value, tuple):
        for n, part in enumerate(value):
            yield value[:n] + value[n + 1 :]
            for plainer in _plainer(part):
                yield (*value[:n], plainer, *value[n + 1 :])
    elif isinstance(value, Script | DeliveryPlan | ItemPlan | Fault):
        for one in fields(type(value)):
            was = getattr(value, one.name)
            if was == one.default:
                continue
            if isinstance(value, Fault) and was == "response lost":
                yield evolve(value, kind="retryable")
            elif not (isinstance(value, Fault) and one.name == "kind"):
                yield evolve(value, **{one.name: one.default})
            for plainer in _plainer(was, is_field=True):
                if plainer != () or one.name != "items":
                    yield evolve(value, **{one.name: plainer})
    elif type(value) is int and is_field and value > 1:
        yield from (v for v in (value // 10 * 10, value // 2) if 0 < v < value)
