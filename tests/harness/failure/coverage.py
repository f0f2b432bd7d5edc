"""Which calls were answered in which ways in a check, and which ways were never seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from peeklock.spec.notation.actions import Action


@frozen
class Coverage:
    """How often each (call, answer) of the specification was seen."""

    reached: Mapping[str, int]
    never: tuple[str, ...] = ()
    """Those that could have been seen and were not."""
    left_out: Mapping[str, str] = field(factory=dict)
    """What could not be exercised, and why."""

    @property
    def complete(self) -> bool:
        """Was everything seen that could be?"""
        return bool(self.reached) and not self.never

    def lines(self) -> tuple[str, ...]:
        """The table as text: the rarest first, then what was never seen, then what could not be."""
        rare_first = sorted(self.reached.items(), key=lambda entry: (entry[1], entry[0]))
        return (
            *(f"{count:>7}  {label}" for label, count in rare_first),
            *(f"  never  {label}" for label in self.never),
            *(f"      -  {what}: {why}" for what, why in self.left_out.items()),
        )


def covered(
    actions: Iterable[Action], taken: Counter[str], left_out: Mapping[str, str] | None = None
) -> Coverage:
    """The coverage of these actions' calls, from how often each action was taken, by its name."""
    counts: dict[str, int] = {}
    left_out = left_out or {}
    for action in actions:
        if action.label.call is not None:
            label = str(action.label)
            if label in left_out and not taken[action.name]:
                continue
            counts[label] = counts.get(label, 0) + taken[action.name]
    return Coverage(
        {label: count for label, count in counts.items() if count},
        tuple(label for label, count in counts.items() if not count),
        left_out,
    )
