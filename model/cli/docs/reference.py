"""The reference: tables and lists of the documentation that are read off the terms of the specification."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator

from attrs import asdict, fields_dict

from peeklock.cli.docs.diagrams import phase_diagram, row_diagram
from peeklock.spec.compose import ACTIONS, POSSIBILITIES, PROMISES, REACTIONS, W
from peeklock.spec.law import environment, store, worker
from peeklock.spec.law.faults import KNOWN_FAULTS
from peeklock.spec.law.life import Life, allowed_by
from peeklock.spec.law.policy import HARDENED, POLICIES, RETRY, Policy
from peeklock.spec.law.state import BELIEF, HISTORY, STORE, Phase, Row
from peeklock.spec.notation.actions import Answer, Call, Event, Metric, Piece
from peeklock.spec.notation.terms import Assignment, Term, Variable
from peeklock.spec.promises.promise import Promise
from peeklock.spec.variants.deviations import NO_DEVIATIONS
from peeklock.spec.variants.variant import Variant


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *map(list, rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """The text as code within a line."""
    return f"`{text}`"


def _members(kind: type[enum.Enum]) -> str:
    return table(("name", "means"), ((code(m.name), m.value) for m in kind))


def _words(kind: type[enum.Enum]) -> str:
    return ", ".join(code(m.value) for m in kind)


def _variables(variables: Iterable[Variable]) -> str:
    def initial(v: Variable) -> str:
        return v.initial.name if isinstance(v.initial, enum.Enum) else str(v.initial).lower()

    return table(
        ("variable", "for each", "at first", "means"),
        ((code(v.name), v.index.name.lower(), code(initial(v)), v.meaning) for v in variables),
    )


def _faults() -> str:
    return table(("class", "what can then happen"), ((code(f.name), f.sentence) for f in KNOWN_FAULTS))


# Pieces and actions

_BOUND = re.compile(r"\b(item|worker)_\d+\b")
"""The name of a bound variable, whose number says only how many were made before it."""


def _guards(guards: Iterable[Term]) -> Iterator[str]:
    for guard in guards:
        inner = guard.args if guard.op == "and" else (guard,)
        yield from (_BOUND.sub(lambda m: {"item": "j", "worker": "v"}[m[1]], str(g)) for g in inner)


def _body(guards: Iterable[Term], effects: Iterable[Assignment], then: Iterable[str] = ()) -> Iterator[str]:
    yield from _lines("when", _guards(guards))
    yield from _lines("then", [*_effects(effects), *then])


def _lines(word: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"    {word if number == 0 else '':4}  {line}"


def _effects(effects: Iterable[Assignment]) -> list[str]:
    """The assignments, with those of a worker that forgets its delivery told in one line."""
    told = [str(a) for a in effects]
    forgotten = [str(a) for a in worker.forget(W)]
    if set(forgotten) <= set(told):
        return [*(a for a in told if a not in forgotten), "w forgets the delivery and is IDLE"]
    return told


def _piece(piece: Piece, heading: str, among: Iterable[Piece] = ()) -> str:
    like = next(
        (
            p
            for p in among
            if piece.name.startswith(f"{p.name}_") and p.clause.effects == piece.clause.effects
        ),
        None,
    )
    clause = piece.clause
    if like is not None:
        more = [g for g in _guards(clause.guards) if g not in tuple(_guards(like.clause.guards))]
        return "\n".join(
            [heading, *_lines("when", [f"as {like.name}", *more]), *_lines("then", [f"as {like.name}"])]
        )
    timer = [f"the timer {clause.timer.value} starts"] if clause.timer else []
    counts = [f"the worker counts: {piece.counts.value}"] if piece.counts else []
    return "\n".join(
        [heading, f"    {piece.sentence}", *_body(clause.guards, clause.effects, [*timer, *counts])]
    )


def _by_call(pieces: Iterable[Piece]) -> str:
    pieces = tuple(pieces)
    parts = []
    for call in Call:
        of_call = [p for p in pieces if call in p.calls]
        if of_call:
            texts = (
                _piece(p, f"{' or '.join(a.value for a in p.answers)}: {p.name}", of_call) for p in of_call
            )
            parts.append(f"### {call.value}\n\n```text\n" + "\n\n".join(texts) + "\n```")
    return "\n\n".join(parts)


def _events() -> str:
    pieces = (*worker.OWN_STEPS, *environment.EVENTS)
    texts = (_piece(p, f"{p.event.value}: {p.name}") for p in pieces if p.event is not None)
    return "```text\n" + "\n\n".join(texts) + "\n```"


def _composed() -> str:
    """One action, put together of an outcome and a reaction."""
    name = "ack: ack committed response lost, will try again"
    (action,) = (a for a in ACTIONS if a.name == name)
    lines = [name, f"    {action.sentence}", *_body(action.guards, action.effects)]
    return "```text\n" + "\n".join(lines) + "\n```"


# Policies


def _value(value: object) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value).lower()


_NOT_SETTLING = ("name", "stands_for", "source", "given")
"""The fields of a policy that say where it comes from."""


def changed(variant: Variant, base: Policy) -> Iterator[tuple[str, str]]:
    """The fields in which a policy differs from another, and its store from the contract, with their values."""
    for name in fields_dict(Policy):
        value = getattr(variant.policy, name)
        if name not in _NOT_SETTLING and value != getattr(base, name):
            yield name, _value(value)
    if variant.store != NO_DEVIATIONS:
        yield "store", str(variant.store)


def _policies() -> str:
    rows = []
    for name, standard in asdict(RETRY).items():
        if name in _NOT_SETTLING:
            continue
        values = [getattr(p, name) for p in POLICIES.values()]
        cells = [code(_value(v)) if v == standard else f"**{code(_value(v))}**" for v in values]
        members = list(type(standard)) if isinstance(standard, enum.Enum) else []
        allowed = ", ".join(str(m.value) for m in members)
        rows.append((code(name), *cells, allowed))
    return table(("field", *POLICIES, "allowed"), rows)


# Promises


def _causes(promise: Promise) -> Iterator[str]:
    for policy, sets in promise.broken_by.items():
        told = "; or ".join(" with ".join(map(code, sorted(s))) for s in sets)
        yield f"broken under {code(policy)} by {told}"
    for policy in promise.silent_in:
        yield f"says nothing under {code(policy)}, which never does what it is about"


def _promises() -> str:
    texts = []
    for promise in PROMISES:
        parts = (f"{'always' if p.state is not None else 'at a step'}: {p.text}" for p in promise.parts)
        lines = "\n".join(f"- {line}" for line in (*parts, *(f"*{c}*" for c in _causes(promise))))
        texts.append(f"**{promise.id}** {promise.text}.\n\n{lines}")
    return "\n\n".join(texts)


def _possibilities() -> str:
    return table(
        ("id", "must be able to happen", "needs", "cannot under"),
        (
            (p.id, p.text, ", ".join(map(code, sorted(p.needs))), ", ".join(map(code, p.impossible_in)))
            for p in POSSIBILITIES
        ),
    )


def _also_checked() -> str:
    """The promises about the contract and the possibilities, by their ids."""
    contract = [p.id for p in PROMISES if not p.id.startswith("S")]
    reached = [p.id for p in POSSIBILITIES]
    return (
        f"Checked as well: {contract[0]} to {contract[-1]}, the store's contract and the worker's duties said "
        f"once more from outside, and {reached[0]} to {reached[-1]}, what must be able to happen at all. They are "
        "in the [reference](docs/protocol.md#promises)."
    )


def _lives() -> str:
    return table(("the delivery is", "when"), ((code(life.name), life.value) for life in Life))


def _verdicts() -> str:
    rows = []
    for verdict in Metric:
        allowed = {p.name: allowed_by(verdict, p) for p in (RETRY, HARDENED)}
        if len(set(allowed.values())) == 1:
            allowed = {"": allowed["retry"]}
        for policy, lives in allowed.items():
            name = verdict.value + (f" (under {code(policy)})" if policy else "")
            rows.append((name, *("yes" if life in lives else "" for life in Life)))
    return table(("the worker counts", *(life.name.lower() for life in Life)), rows)


REFERENCE: dict[str, Callable[[], str]] = {
    "rows": lambda: _members(Row),
    "phases": lambda: _members(Phase),
    "store variables": lambda: _variables(STORE),
    "worker variables": lambda: _variables(BELIEF),
    "history variables": lambda: _variables(HISTORY),
    "faults": _faults,
    "outcomes": lambda: _by_call(store.OUTCOMES),
    "reactions": lambda: _by_call(REACTIONS),
    "events": _events,
    "composed action": _composed,
    "policies": _policies,
    "promises": _promises,
    "possibilities": _possibilities,
    "also checked": _also_checked,
    "lives": _lives,
    "verdicts": _verdicts,
    "row diagram": row_diagram,
    "phase diagram": phase_diagram,
    "words of calls": lambda: _words(Call),
    "words of events": lambda: _words(Event),
    "words of verdicts": lambda: _words(Metric),
    "words of answers": lambda: _words(Answer),
}
