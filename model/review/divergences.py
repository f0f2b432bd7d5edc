"""Partings: where two automata of behaviours part, and what each can then come to that the other cannot.

Both are walked together for as long as they agree. A **parting** is an observation after which the two workers react
differently, or which only one of them can make; what follows from it and is a word of one automaton only is told by
its endings, each with a shortest word. No parting with an ending means that every word of the one is a word of the
other: the inclusion is decided.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cache

from attrs import define, evolve, field, frozen

from peeklock.model.review.behaviours import CUTS, Automaton, Letter, Place
from peeklock.spec.notation.actions import Call, Event, Metric

_END, _DEAD = 1, -1
_LIKE_A_RESULT = {
    Event.HANDLER_FAILS.value: Event.HANDLER_SUCCEEDS.value,
    Metric.APPLICATION_ERROR.value: Metric.SUCCESS.value,
}
"""A result stands for an application error: the protocol treats them alike."""
CUT_SHORT = "cut short by a crash or by the end of a shutdown's grace"


@frozen(order=True)
class Reaction:
    """What a worker makes of an observation: what it counts, what it is then at, and whether it stops renewing."""

    counts: str
    phase: str
    stays: bool
    """It is at the same thing as before."""
    stops_renewing: bool


@frozen(order=True)
class Parting:
    """One way to part: what the worker was at, what it saw, and what each side makes of it (nothing: cannot be)."""

    phase: str
    trouble: str
    is_poison: bool
    does: str
    old: tuple[Reaction, ...]
    new: tuple[Reaction, ...]


@frozen
class Ending:
    """One thing that a delivery can come to: how it ends, what was counted, after how many acks, a shortest word."""

    last: str
    """The last call, or the event that ended it."""
    answers: tuple[str, ...]
    counts: tuple[str, ...]
    acks: tuple[int, int]
    word: tuple[Letter, ...]


@define
class Branch:
    """What one side alone can come to after a parting."""

    endings: tuple[Ending, ...] = ()
    sequences: int = 0
    """Its words, with renewals that stop nobody, shutdowns and crashes left out."""


@define
class Group:
    """A parting with what follows from it, on either side."""

    parting: Parting
    answers: set[str] = field(factory=set)
    attempts: set[int] = field(factory=set)
    """At which attempts of the ack sequence it was met, counted from 1 in the sequence."""
    lost: Branch = field(factory=Branch)
    gained: Branch = field(factory=Branch)


@frozen
class _Node:
    """A pair of states, how the two parted, and what the word so far holds."""

    more: int
    less: int
    parting: Parting | None = None
    acks: int = 0
    counts: tuple[str, ...] = ()


@define
class _Found:
    answers: set[str]
    acks: set[int]
    word: tuple[Letter, ...]


def like(text: str) -> str:
    """The text with a result in the place of an application error."""
    return _LIKE_A_RESULT.get(text, text)


def partings(old: Automaton, new: Automaton) -> tuple[Group, ...]:
    """Every parting of two automata from which a word of one side only follows, the simplest first."""
    groups: dict[Parting, Group] = {}
    order: dict[Parting, int] = {}
    for more, less, gains in ((old, new, False), (new, old, True)):
        walk = _Walk(more, less, gains)
        for parting, (cost, answers, attempts, branch) in walk.branches().items():
            group = groups.setdefault(parting, Group(parting))
            group.answers |= answers
            group.attempts |= attempts
            order[parting] = min(cost, order.get(parting, cost))
            if gains:
                group.gained = branch
            else:
                group.lost = branch
    return tuple(sorted(groups.values(), key=lambda g: (g.parting.is_poison, order[g.parting], g.parting)))


def _is_minor(parting: Parting) -> bool:
    """Only the renewing differs, or one side has nothing to say: it is understood best when the rest is known."""
    return not parting.old or not parting.new or all(r.stays for r in (*parting.old, *parting.new))


def shortest(groups: tuple[Group, ...], gains: bool) -> tuple[Letter, ...] | None:
    """The shortest word that one side allows and the other does not, told without a crash where there is one."""
    words = [e.word for g in groups for e in (g.gained if gains else g.lost).endings]
    return min(words, key=lambda w: (_cost_of(w), w), default=None)


def _cost(letter: Letter) -> int:
    """Plain words are preferred: a shutdown or a crash is told only where it takes one."""
    if letter.does in CUTS or letter.does == Event.SHUTDOWN.value:
        return 60
    unusual = letter.does in _LIKE_A_RESULT or letter.does == Event.HANDLER_MISSING.value
    return 11 if unusual or letter.does == Call.RENEW.value else 10


def _cost_of(word: tuple[Letter, ...]) -> int:
    return sum(map(_cost, word))


class _Walk:
    """The words of one automaton that are no words of another, by how the two part."""

    def __init__(self, more: Automaton, less: Automaton, gains: bool) -> None:
        self.more, self.less, self.gains = more, less, gains
        self.met: dict[Parting, tuple[set[str], set[int]]] = {}

    def branches(self) -> dict[Parting, tuple[int, set[str], set[int], Branch]]:
        """For each parting from which a word follows: the cost of the simplest, what was met, and the branch."""
        found: dict[Parting, dict[tuple[str, tuple[str, ...]], _Found]] = {}
        costs: dict[Parting, int] = {}
        start = _Node(0, 0)
        best: dict[_Node, tuple[int, _Node | None, Letter | None]] = {start: (0, None, None)}
        queue = [(0, 0, start)]
        number = 1
        while queue:
            cost, _, node = heapq.heappop(queue)
            if cost != best[node][0]:
                continue
            for letter, after in self._steps(node):
                if after.more == _END and after.less != _END:
                    assert after.parting is not None, "two words that differ part somewhere"
                    costs.setdefault(after.parting, cost)
                    self._ends(
                        found.setdefault(after.parting, {}), after, letter, (*_word(best, node), letter)
                    )
                total = cost + _cost(letter)
                if after.more != _END and (after not in best or total < best[after][0]):
                    best[after] = (total, node, letter)
                    heapq.heappush(queue, (total, number, after))
                    number += 1
        return {
            parting: (costs[parting], *self.met[parting], self._branch(parting, endings))
            for parting, endings in found.items()
        }

    def _ends(
        self,
        found: dict[tuple[str, tuple[str, ...]], _Found],
        after: _Node,
        letter: Letter,
        word: tuple[Letter, ...],
    ) -> None:
        last = CUT_SHORT if letter.does in CUTS else letter.does
        ending = found.setdefault((last, after.counts), _Found(set(), set(), word))
        ending.answers |= {letter.answer} if letter.answer else set()
        ending.acks.add(after.acks)
        if (_cost_of(word), word) < (_cost_of(ending.word), ending.word):
            ending.word = word

    def _branch(self, parting: Parting, found: dict[tuple[str, tuple[str, ...]], _Found]) -> Branch:
        endings = [
            Ending(last, tuple(sorted(f.answers)), counts, (min(f.acks), max(f.acks)), f.word)
            for (last, counts), f in found.items()
        ]
        endings.sort(key=lambda e: (e.last == CUT_SHORT, _cost_of(e.word), e.word))
        return Branch(tuple(endings), _Sequences(self, parting).of(_Node(0, 0)))

    def _steps(self, node: _Node) -> Iterator[tuple[Letter, _Node]]:
        for letter, target in self.more.steps[node.more].items():
            less = _DEAD if node.less == _DEAD else self.less.steps[node.less].get(letter, _DEAD)
            parting = node.parting or self._parting(node, letter)
            if parting is None or less != _DEAD or target != _DEAD:
                yield (
                    letter,
                    _Node(
                        target,
                        less,
                        parting,
                        node.acks + (letter.does == Call.ACK.value),
                        (*node.counts, like(letter.counts)) if letter.counts else node.counts,
                    ),
                )

    def _parting(self, node: _Node, letter: Letter) -> Parting | None:
        """How the two part at this letter; None where both react alike."""
        here = self.more.places[node.more]
        mine = _reactions(self.more, node.more, letter)
        theirs = _reactions(self.less, node.less, letter)
        if mine == theirs:
            return None
        old, new = (theirs, mine) if self.gains else (mine, theirs)
        parting = Parting(here.phase, here.trouble, here.is_poison, like(letter.does), old, new)
        answers, attempts = self.met.setdefault(parting, (set(), set()))
        answers |= {letter.answer} if letter.answer else set()
        attempts.add(here.attempts + 1)
        return parting


def _reactions(automaton: Automaton, state: int, seen: Letter) -> tuple[Reaction, ...]:
    """What the worker makes of an observation: of a call's answer, whatever it then counts."""
    here = automaton.places[state]
    return tuple(
        sorted(
            {
                _reaction(here, automaton.places[target], letter)
                for letter, target in automaton.steps[state].items()
                if (letter.does, letter.answer) == (seen.does, seen.answer)
            }
        )
    )


def _reaction(here: Place, there: Place, letter: Letter) -> Reaction:
    stays = here.phase == there.phase
    return Reaction(like(letter.counts), there.phase, stays, stays and here.renewing and not there.renewing)


class _Sequences:
    """How many words follow from a parting, counted over letters that change something."""

    def __init__(self, walk: _Walk, parting: Parting) -> None:
        self.walk, self.parting = walk, parting
        self.of = cache(self._of)

    def _of(self, node: _Node) -> int:
        total = 0
        for letter, after in self.walk._steps(node):
            if after.parting not in (None, self.parting):
                continue
            parts = node.parting is None and after.parting is not None and letter.does not in CUTS
            if not parts and not counted(self.walk.more, node.more, letter):
                continue
            if after.more == _END:
                total += after.less != _END
            else:
                total += self.of(evolve(after, acks=0, counts=()))
        return total


def counted(automaton: Automaton, state: int, letter: Letter) -> bool:
    """Is this a step that a list of sequences tells? No shutdown, no crash, no renewal that stops nobody."""
    if letter.does in CUTS or letter.does in (Event.SHUTDOWN.value, Event.HANDLER_FAILS.value):
        return False
    there = automaton.places[automaton.steps[state][letter]]
    return letter.does != Call.RENEW.value or there.phase != automaton.places[state].phase


def _word(
    best: dict[_Node, tuple[int, _Node | None, Letter | None]], node: _Node | None
) -> tuple[Letter, ...]:
    letters: list[Letter] = []
    while node is not None:
        _, node, letter = best[node]
        if letter is not None:
            letters.append(letter)
    return tuple(reversed(letters))
