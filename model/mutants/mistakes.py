"""Mistakes that people make in stores and workers of this kind, each as a small change of the protocol.

Most are from public bug reports. Each names the promise (or the possibility, or ``stuck``) that is expected to
notice it; a run finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from peeklock.model.mutants import mistaken_pieces
from peeklock.model.mutants.mutate import PIECES, Kind, Mutant, Pieces
from peeklock.spec.compose import I, T, W
from peeklock.spec.law.state import (
    Phase,
    Result,
    Row,
    attempt_count,
    attempts,
    completions,
    current,
    draining,
    issued,
    phase,
    renewing,
    result,
    row,
)
from peeklock.spec.law.store import fetchable, in_queue, is_current, lock_is_valid
from peeklock.spec.law.worker import in_sequence, may_fetch
from peeklock.spec.notation.actions import (
    Answer,
    Clause,
    Metric,
    Piece,
    when,
)
from peeklock.spec.notation.terms import TRUE, Assignment, Term, Variable, rebuild


@frozen
class Mistake:
    """A mistake, and what is expected to notice it."""

    name: str
    noticed_by: str
    pieces: Pieces

    @property
    def mutant(self) -> Mutant:
        """The protocol with the mistake in it."""
        return Mutant(self.name, Kind.MISTAKE, self.pieces.actions)


def _is(name: str, piece: Piece) -> bool:
    """The sentence of this name, and what was made from it: with its response lost, or answered dishonestly."""
    return piece.name in (name, f"{name}_response_lost", f"{name}_dishonestly")


def _sentence(name: str) -> Piece:
    return next(p for p in PIECES if p.name == name)


def _changing(names: str | tuple[str, ...], change: Callable[[Clause], Clause]) -> Pieces:
    names = (names,) if isinstance(names, str) else names
    assert all(any(_is(name, p) for p in PIECES) for name in names), names
    return PIECES.replaced(
        lambda p: evolve(p, clause=change(p.clause)) if any(_is(n, p) for n in names) else p
    )


def guarded(names: str | tuple[str, ...], old: Term, new: Term) -> Pieces:
    """A condition in the guards of one sentence or of several is another one."""

    def change(clause: Clause) -> Clause:
        guards = tuple(rebuild(g, lambda t: new if t is old else None) for g in clause.guards)
        assert any(a is not b for a, b in zip(guards, clause.guards, strict=True)), f"{names}: no {old}"
        return evolve(clause, guards=when(*guards).guards)

    return _changing(names, change)


def writing(name: str, *effects: Assignment) -> Pieces:
    """A step writes this, whatever it wrote to these variables."""
    targets = [e.target for e in effects]
    return _changing(
        name,
        lambda c: evolve(
            c, effects=(*(e for e in c.effects if not any(e.target is t for t in targets)), *effects)
        ),
    )


def not_writing(name: str, *variables: Variable) -> Pieces:
    """A step leaves some variables as they are."""
    return _changing(
        name, lambda c: evolve(c, effects=tuple(e for e in c.effects if e.variable not in variables))
    )


def counting(name: str, metric: Metric) -> Pieces:
    """A reaction counts something else."""
    return PIECES.replaced(lambda p: evolve(p, counts=metric) if _is(name, p) else p)


def only(name: str, *answers: Answer, plus: Piece | None = None) -> Pieces:
    """A reaction is to these answers only, and another one to the rest."""
    changed = PIECES.replaced(lambda p: evolve(p, answers=answers) if _is(name, p) else p)
    return changed if plus is None else evolve(changed, reactions=(*changed.reactions, plus))


def answering(piece: Piece) -> Pieces:
    """The store can also answer like this."""
    return evolve(PIECES, outcomes=(*PIECES.outcomes, piece))


def reacting(piece: Piece, instead_of: str = "") -> Pieces:
    """The worker also reacts like this, or it does so instead."""
    kept = tuple(r for r in PIECES.reactions if r.name != instead_of)
    assert len(kept) + bool(instead_of) == len(PIECES.reactions), instead_of
    return evolve(PIECES, reactions=(*kept, piece))


def happening(piece: Piece) -> Pieces:
    """This also happens."""
    return evolve(PIECES, events=(*PIECES.events, piece))


def never(name: str) -> Pieces:
    """An event does not happen."""
    return evolve(PIECES, events=tuple(e for e in PIECES.events if e.name != name))


def _refusals_retried(piece: Piece) -> Pieces:
    silenced = PIECES.replaced(lambda p: evolve(p, calls=()) if p.name.startswith("refusal_") else p)
    return evolve(silenced, reactions=(*silenced.reactions, piece))


def _mistakes() -> Iterator[Mistake]:
    valid, own = lock_is_valid(I, T), is_current(I, T)
    abandons = _sentence("refusal_is_uncertain_and_abandoned").clause.effects
    expired_too = own & ((row[I] == Row.LOCKED) | (row[I] == Row.EXPIRED))
    yield Mistake("ack accepts a superseded token", "S5", guarded("ack_committed", valid, in_queue(I)))
    yield Mistake("renew accepts a superseded token", "S5", guarded("renewed", valid, row[I] == Row.LOCKED))
    yield Mistake("abandon accepts a superseded token", "S5", guarded("abandoned", own, in_queue(I)))
    yield Mistake("ack accepts an expired lock", "S5", guarded("ack_committed", valid, expired_too))
    yield Mistake("renew revives an expired lock", "S5", answering(mistaken_pieces.expired_lock_renewed))
    yield Mistake(
        "ack answers ok for a token that is no longer good",
        "S5",
        answering(mistaken_pieces.ok_without_effect),
    )
    yield Mistake(
        "a refused ack enqueues its completion", "S3", answering(mistaken_pieces.refused_but_enqueued)
    )
    yield Mistake(
        "ack enqueues in one transaction and deletes in another",
        "S3",
        answering(mistaken_pieces.enqueued_but_not_deleted),
    )
    yield Mistake("ack deletes the row and enqueues nothing", "S3", not_writing("ack_committed", completions))
    yield Mistake("ack enqueues and leaves the row", "S2", not_writing("ack_committed", row, current))
    yield Mistake(
        "a cancellation ack enqueues a completion",
        "S3",
        writing("cancellation_ack_committed", completions[I].becomes(completions[I] + 1)),
    )
    yield Mistake(
        "fetch hands out a locked row",
        "S6",
        guarded("fetched", fetchable(I), fetchable(I) | (row[I] == Row.LOCKED)),
    )
    yield Mistake(
        "fetch hands out a row that is still delayed",
        "C1",
        guarded("fetched", fetchable(I), fetchable(I) | (row[I] == Row.DELAYED)),
    )
    yield Mistake(
        "fetch deletes the row", "S12", writing("fetched", row[I].becomes(Row.ACKED), current[I].becomes(0))
    )
    yield Mistake("the next delivery has the same token", "S4", not_writing("fetched", issued))
    yield Mistake(
        "fetch answers nothing although an item waits",
        "C1",
        guarded("nothing_to_fetch", _sentence("nothing_to_fetch").clause.guards[0], TRUE),
    )
    yield Mistake(
        "a row that is gone is fetched again",
        "S4",
        guarded("fetched", fetchable(I), fetchable(I) | (row[I] == Row.CANCELLED)),
    )
    yield Mistake("the attempt count does not go up", "C2", not_writing("fetched", attempt_count))
    yield Mistake("abandon resets the attempt count", "C2", writing("abandoned", attempt_count[I].becomes(0)))
    yield Mistake(
        "abandon of an acked item puts it back", "S4", answering(mistaken_pieces.acked_item_abandoned)
    )
    yield Mistake("abandon leaves the token on the row", "S4", not_writing("abandoned", current))
    yield Mistake("a lock never expires", "stuck", never("lock_expires"))
    yield Mistake(
        "an expired lock kills the item at once", "C6", writing("lock_expires", row[I].becomes(Row.CANCELLED))
    )
    yield Mistake(
        "a starting runtime recovers items that are being worked on",
        "S6",
        happening(mistaken_pieces.recovered_at_boot),
    )
    yield Mistake(
        "a rescuer puts a completed item back", "S4", happening(mistaken_pieces.rescued_after_completion)
    )
    yield Mistake("a crash unlocks the row", "C6", happening(mistaken_pieces.crash_unlocks))
    yield Mistake(
        "a locked row becomes visible when its delay would be over",
        "S6",
        _changing(
            "item_becomes_visible",
            lambda c: when((row[I] == Row.DELAYED) | (row[I] == Row.LOCKED)).then(
                *c.effects, current[I].becomes(0)
            ),
        ),
    )
    yield Mistake(
        "cancel enqueues a completion", "S3", writing("cancelled", completions[I].becomes(completions[I] + 1))
    )
    yield Mistake("cancel leaves the lock", "S4", not_writing("cancelled", current))

    yield Mistake(
        "the worker abandons after one retryable error",
        "S10",
        reacting(mistaken_pieces.abandons_at_once, "will_try_again"),
    )
    yield Mistake("a permanent error is retried", "S9", _refusals_retried(mistaken_pieces.retries_a_refusal))
    yield Mistake(
        "a permanent error is retried for ever",
        "S9",
        _refusals_retried(mistaken_pieces.retries_a_refusal_for_ever),
    )
    yield Mistake(
        "a retryable error is retried for ever",
        "S9",
        reacting(mistaken_pieces.retries_for_ever, "will_try_again"),
    )
    yield Mistake(
        "a sixth attempt is made", "S9", guarded("will_try_again", attempts[W] + 1, attempts[W] + 0)
    )
    yield Mistake(
        "a timeout is taken for success", "C7", reacting(mistaken_pieces.takes_a_timeout_for_success)
    )
    yield Mistake(
        "the spent budget is not told",
        "C7",
        reacting(mistaken_pieces.drops_it_silently, "gives_up_and_abandons"),
    )
    yield Mistake(
        "uncertain is counted as a failure too",
        "S13",
        counting("refusal_is_uncertain", Metric.INFRASTRUCTURE_ERROR),
    )
    yield Mistake(
        "an uncertain delivery is acked again",
        "S7",
        reacting(mistaken_pieces.uncertain_and_again, "refusal_is_uncertain"),
    )
    yield Mistake(
        "an uncertain delivery is abandoned",
        "S7",
        _changing("refusal_is_uncertain", lambda c: evolve(c, effects=abandons)),
    )
    yield Mistake(
        "a first permanent error is called uncertain",
        "S8",
        _changing("refusal_is_uncertain", lambda c: when(in_sequence(W)).then(*c.effects)),
    )
    yield Mistake("a lost lock is called success", "C7", counting("refusal_is_a_failure", Metric.SUCCESS))
    yield Mistake(
        "the poison ack is counted although it failed",
        "S14",
        _changing(
            "poison_is_counted_whatever_the_answer",
            lambda c: when(phase[W] == Phase.ACKING, result[W] == Result.POISON).then(*c.effects),
        ),
    )
    yield Mistake(
        "the handler of a poison item runs", "C3", writing("finds_poison", phase[W].becomes(Phase.FETCHED))
    )
    yield Mistake(
        "poison is found one delivery late",
        "C3",
        guarded(("takes_it_in_hand", "finds_poison"), attempt_count[I] + 1, attempt_count[I]),
    )
    yield Mistake(
        "a cancellation ack is retried",
        "S9",
        writing("cancellation_ack_failed", phase[W].becomes(Phase.CANCELLING)),
    )
    yield Mistake(
        "a handler that was told to stop has its result acked",
        "C5",
        happening(mistaken_pieces.stopped_handler_is_acked),
    )
    yield Mistake(
        "a handler whose lock is lost runs on",
        "C5",
        reacting(mistaken_pieces.lets_the_handler_run_on, "cancels_at_a_permanent_renewal_error"),
    )
    yield Mistake(
        "one failed renewal ends the renewing, the handler runs on",
        "C5",
        reacting(mistaken_pieces.goes_on_without_renewing, "cancels_at_a_retryable_renewal_error"),
    )
    yield Mistake("the lock is not renewed", "C5", writing("takes_it_in_hand", renewing[W].becomes(False)))
    yield Mistake(
        "renewing ends when the handler does", "C5", writing("handler_succeeds", renewing[W].becomes(False))
    )
    yield Mistake(
        "renewing goes on when the handler was told to stop",
        "C5",
        not_writing("cancels_at_a_retryable_renewal_error", renewing),
    )
    yield Mistake("renewing goes on after a shutdown", "C5", not_writing("shutdown_begins", renewing))
    yield Mistake(
        "a worker fetches while it shuts down",
        "C5",
        guarded("takes_it_in_hand", may_fetch(W), phase[W] == Phase.IDLE),
    )
    yield Mistake(
        "a worker fetches while it has work in hand",
        "C5",
        guarded("takes_it_in_hand", may_fetch(W), ~draining[W]),
    )
    yield Mistake(
        "an abandon is sent until it works",
        "C5",
        only("abandon_is_best_effort", Answer.OK, plus=mistaken_pieces.abandons_until_it_works),
    )
    yield Mistake(
        "a worker that crashed goes on with its token",
        "C6",
        _changing("worker_crashes", lambda c: evolve(c, effects=())),
    )
    yield Mistake(
        "an item without a handler is acked",
        "S9",
        writing("handler_is_missing", phase[W].becomes(Phase.ACKING)),
    )


MISTAKES = tuple(_mistakes())
