"""A walk in plain text: where things stand, what is believed and what is true, as the page has it, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import frozen

from peeklock.harness.story.story import ARROW, note_on
from peeklock.model.explore.lives import life_of
from peeklock.model.explore.walks import Explorer, Move, fingerprint, position, read_position, step_of
from peeklock.spec.law.life import IN_HAND, Life, allowed_by
from peeklock.spec.law.state import BELIEF, HISTORY, issued, token, working_on
from peeklock.spec.notation.actions import Metric
from peeklock.spec.notation.terms import BOOL, ITEM, WORKER, Sort, Variable
from peeklock.spec.reading.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE, Record, State, decoded
from peeklock.spec.reading.narrative import ITEM_TOLD, WORKER_TOLD, describe_item, describe_worker
from peeklock.spec.reading.wording import item_name, many, token_name, told_variables, worker_name

_TOLD = told_variables((*WORKER_TOLD, *ITEM_TOLD))


class Walk:
    """The steps taken from the initial state, and the place in it where the reader stands."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer, self.path, self.at = explorer, list[Move](), 0
        self.note = ""
        """What there is to say of the run that is followed; empty where none is, or the walk has left it."""
        self.followed = 0
        """So many steps that run has."""

    @property
    def taken(self) -> list[Move]:
        """The steps up to here."""
        return self.path[: self.at]

    @property
    def states(self) -> list[State]:
        """The states up to here: one more than steps."""
        return [self.explorer.world.initial(), *(m.later for m in self.taken)]

    @property
    def state(self) -> State:
        """Where the reader stands."""
        return self.states[-1]

    @property
    def moves(self) -> tuple[Move, ...]:
        """What can be next."""
        return self.explorer.moves(self.state)

    @property
    def position(self) -> str:
        """The place as it stands in a link."""
        return position(self.explorer.world, (m.taken for m in self.taken))

    def take(self, move: Move) -> None:
        """Take a step; what was to follow in a loaded run is forgotten, unless it is the step that was to follow."""
        following = self.path[self.at].taken if self.at < len(self.path) else None
        if following != move.taken:
            self.lead([move])
        self.at += 1

    def lead(self, moves: Iterable[Move]) -> None:
        """Let these steps follow from here, instead of what was to follow."""
        self.path[self.at :] = moves
        if self.at < self.followed:
            self.note, self.followed = "", 0

    def go(self, at: int) -> None:
        """Stand after so many steps, or at the nearest end."""
        self.at = min(max(at, 0), len(self.path))

    def follow(self, position: str, note: str = "") -> str:
        """Go to a position as far as its steps can be taken; what is to be said of that, or nothing.

        ``note`` is what there is to say of the run to this position, as long as the walk goes through its end.
        ``PositionError`` for a text that is no position.
        """
        of, steps = read_position(position)
        world = self.explorer.world
        mine = fingerprint(world.actions_of_protocol)
        self.path, missing = self.explorer.follow(steps)
        self.at = self.followed = len(self.path)
        self.note = note
        other = f"another revision of the protocol ({of}; this is {mine})"
        if missing is None:
            all_of = f"This link is of {other}; all of its {many(len(steps), 'step')} can be taken here, too."
            return "" if of == mine else all_of
        why = f"step {self.at + 1} cannot be taken in this world under policy {world.variant.policy.name}"
        return (
            f"Only {self.at} of the {many(len(steps), 'step')} of this link could be taken: "
            f"{why if of == mine else f'it is of {other}'}."
        )

    @property
    def broken(self) -> list[tuple[str, int]]:
        """The promises that were broken on the way, each with the number of the step that broke it."""
        return [(b.promise.id, k) for k, move in enumerate(self.taken, 1) for b in move.breaks]


@frozen
class Delivery:
    """A delivery: what it was in truth, one after the other, and what was counted of it by whom."""

    name: str
    lives: tuple[Life, ...]
    verdicts: tuple[tuple[str, Metric], ...]


def deliveries(walk: Walk) -> Iterator[Delivery]:
    """All deliveries up to where the reader stands."""
    states = walk.states
    for i, record in enumerate(walk.state[1]):
        for t in range(1, record[PLACE[issued]] + 1):
            lives = [life for s in states if (life := life_of(s, i, t)) is not None]
            verdicts = [
                (move.line.who, counts)
                for before, move in zip(states, walk.taken, strict=False)
                if (counts := move.taken.action.label.counts) is not None
                and in_hand(before, move.taken.worker) == (i, t)
            ]
            changes = tuple(life for k, life in enumerate(lives) if k == 0 or life is not lives[k - 1])
            yield Delivery(f"{token_name(i, t)} of {item_name(i)}", changes, tuple(verdicts))


def in_hand(state: State, w: int) -> tuple[int, int] | None:
    """The delivery that a worker has in hand, as item and token."""
    record = state[0][w]
    item = decoded(working_on, record[PLACE[working_on]])
    return None if item is None else (item, record[PLACE[token]])


def step_text(move: Move) -> str:
    """A step in one line."""
    line = move.line
    note = note_on(line.answer, line.faults, bool(line.truth))
    return (
        f"{line.who}: {line.does}"
        + (f" {ARROW} {line.answer}" if line.answer else "")
        + (f" ({note})" if note else "")
        + "".join(f" ! {name}" for name in line.faults)
    )


def step_data(move: Move) -> dict[str, Any]:
    """A step for machines."""
    line = move.line
    return {
        "step": str(step_of(move.taken)),
        "action": move.taken.action.name,
        "who": line.who,
        "does": line.does,
        "answer": line.answer,
        "truth": list(line.truth),
        "belief": list(line.belief),
        "faults": list(line.faults),
        "breaks": [{"promise": b.promise.id, "part": b.part.text} for b in move.breaks],
    }


def summary(walk: Walk) -> str:
    """The place in plain text, to be pasted somewhere."""
    world = walk.explorer.world
    lines = [f"policy {world.variant.policy.name}; {world}", *filter(None, [walk.note]), ""]
    for k, move in enumerate(walk.taken, 1):
        lines.append(f"{k:3}  {step_text(move)}")
        lines += _of_step(move)
    lines += ["" if walk.at else "  nothing has happened yet\n", "now:", *standing(walk)]
    following = [f"  ✗ {b.promise.id}: {step_text(move)}" for move in walk.moves for b in move.breaks]
    if following:
        lines += ["", "a next step could break:", *following]
    return "\n".join([*lines, "", f"position: {walk.position}"]) + "\n"


def _of_step(move: Move) -> Iterator[str]:
    if move.line.truth:
        yield f"       truth: {'; '.join(move.line.truth)}"
    if move.line.belief:
        yield f"       {move.line.who}: {'; '.join(move.line.belief)}"
    for b in move.breaks:
        yield f'       ✗ breaks {b.promise.id}, where this is false: "{b.part.text}"'


def standing(walk: Walk) -> Iterator[str]:
    """What each worker believes, what is true, and where they differ."""
    for belief in beliefs(walk):
        yield f"  {belief.believed}"
        if belief.differs:
            yield f"    ≠ in truth {belief.true}"
    yield from (f"  {line}" for line in truths(walk))
    yield from (f"  {line}" for line in history(walk))


@frozen
class Belief:
    """What a worker believes, and what is true of the delivery in its hand."""

    believed: str
    true: str = ""
    """Empty where it has none in hand."""
    differs: bool = False


def beliefs(walk: Walk) -> Iterator[Belief]:
    """What each worker believes, beside the truth."""
    for w, record in enumerate(walk.state[0]):
        remembered = _bracketed(details(record, INITIAL_WORKER, BELIEF, WORKER))
        told, hand = f"worker {worker_name(w)} {describe_worker(record)}", in_hand(walk.state, w)
        if hand is None:
            yield Belief(f"{told}{remembered}")
            continue
        life, token_held = life_of(walk.state, *hand), token_name(*hand)
        assert life is not None, "what is in hand was fetched"
        yield Belief(
            f"{told}; in hand: {token_held} of {item_name(hand[0])}{remembered}",
            f"{token_held} is {life.name.lower()}: {life.value}",
            life is not IN_HAND,
        )


def truths(walk: Walk) -> Iterator[str]:
    """Where each item stands."""
    for i, record in enumerate(walk.state[1]):
        where = describe_item(record, lambda t, i=i: token_name(i, t))  # type: ignore[misc]
        yield f"{item_name(i)} is {where}{_bracketed(details(record, INITIAL_ITEM, HISTORY, ITEM))}"


def history(walk: Walk) -> Iterator[str]:
    """What each delivery was, what was counted of it, and which promises were broken."""
    policy = walk.explorer.world.variant.policy
    for delivery in deliveries(walk):
        told = f" {ARROW} ".join(life.name.lower() for life in delivery.lives)
        counted = "".join(f"; {who} counted: {counts.value}" for who, counts in delivery.verdicts)
        yield f"{delivery.name}: {told}{counted}"
        for _, counts in delivery.verdicts:
            allowed = allowed_by(counts, policy)
            if delivery.lives[-1] not in allowed:
                yield f"  ≠ {counts.value} means {' or '.join(life.name.lower() for life in allowed)}"
    for pid, number in walk.broken:
        yield f"✗ {pid} was broken at step {number}"


def details(record: Record, initial: Record, variables: Iterable[Variable], index: Sort) -> list[str]:
    """What else is remembered of a worker or an item: the switches that are on, and what is not as at first."""
    found = []
    for v in variables:
        if v.index != index or v in _TOLD or record[PLACE[v]] == initial[PLACE[v]]:
            continue
        if v.sort == BOOL:
            found.append(v.name)
        elif v.sort.members:
            found.append(f"{v.name}: {decoded(v, record[PLACE[v]]).value}")
    return found


def _bracketed(words: list[str]) -> str:
    return f" ({', '.join(words)})" if words else ""
