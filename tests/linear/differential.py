"""Holds the judge against brute force on histories made up by chance: they must not differ, either way.

Run it by hand: python tests/linear/differential.py [--histories N] [--from N]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable

from brute_force import brute_force
from made_up import History, history

from peeklock.harness.linear.exact import ExactHistory
from peeklock.harness.linear.worlds import Undecided
from peeklock.harness.monitor.world import Violation

BUDGETS = ((100, 20), (1_500, 200))
"""How many steps and worlds are tried, one after the other."""


def judged(made: History, budgets: Iterable[tuple[int, int]] = BUDGETS) -> bool | None:
    """Is the history explained, by the judge? None where it does not say."""
    for steps, worlds in budgets:
        judge = ExactHistory(
            made.capabilities,
            made.clock,
            most_steps=steps,
            most_worlds=worlds,
            most_effort=1 << 60,
            widens=False,
        )
        try:
            for event in made.events:
                judge.add(event)
            judge.end()
        except Violation:
            return False
        except Undecided:
            continue
        return True
    return None


def compared(numbers: Iterable[int]) -> tuple[Counter[str], list[int]]:
    """How often which verdict was given, and the numbers of the histories on which the two differ."""
    counts: Counter[str] = Counter()
    differ = []
    for number in numbers:
        made = history(number)
        right, found = brute_force(made.capabilities, made.clock).explains(made.events), judged(made)
        counts["undecided" if found is None else "explained" if found else "unexplained"] += 1
        if not made.is_changed and not right:
            differ.append(number)  # a store did so
        if found is not None and found is not right:
            differ.append(number)
    return counts, differ


def main() -> None:
    """Print the verdicts, and on which histories the two differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200_000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    options = parser.parse_args()
    began = time.process_time()
    total: Counter[str] = Counter()
    for first in range(options.first, options.first + options.histories, 500):
        counts, differ = compared(range(first, min(first + 500, options.first + options.histories)))
        total += counts
        print(
            f"{first + 500}: {dict(total)}, differ: {differ}, {time.process_time() - began:.0f} s", flush=True
        )


if __name__ == "__main__":
    main()
