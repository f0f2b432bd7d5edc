"""Mistakes that people make in stores and workers of this kind, each as a small change of the protocol.

Most are from public bug reports. Each names the promise (or the possibility, or ``stuck``) that is expected to
notice it; a run finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from peeklock.model.mutate import PIECES, Kind, Mutant, Pieces
from peeklock.spec.actions import (
    ABANDONS,
    ACKS,
    Answer,
    Call,
    Clause,
    Event,
    Item,
    Metric,
    Piece,
    Token,
    Worker,
    event,
    outcome,
    reaction,
    when,
)
from peeklock.spec.policy import rule
from peeklock.spec.protocol import I, T, W
from peeklock.spec.state import (
    Last,
    Phase,
    Result,
    Row,
    acked_by,
    attempt_count,
    attempts,
    completions,
    current,
    draining,
    issued,
    last,
    phase,
    renewing,
    result,
    row,
    token,
    working_on,
)
from peeklock.spec.store import fetchable, in_queue, is_current, lock_is_valid
from peeklock.spec.terms import TRUE, Assignment, Term, Variable, rebuild
from peeklock.spec.worker import forget, in_sequence, may_fetch


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


def _changing(name: str, change: Callable[[Clause], Clause]) -> Pieces:
    assert any(_is(name, p) for p in PIECES), name
    return PIECES.replaced(lambda p: evolve(p, clause=change(p.clause)) if _is(name, p) else p)


def guarded(name: str, old: Term, new: Term) -> Pieces:
    """A condition in a guard is another one."""

    def change(clause: Clause) -> Clause:
        guards = tuple(rebuild(g, lambda t: new if t is old else None) for g in clause.guards)
        assert any(a is not b for a, b in zip(guards, clause.guards, strict=True)), f"{name} does not ask for {old}"
        return when(*guards).then(*clause.effects) if clause.timer is None else evolve(clause, guards=when(*guards).guards)

    return _changing(name, change)


def writing(name: str, *effects: Assignment) -> Pieces:
    """A step writes this, whatever it wrote to these variables."""
    targets = [e.target for e in effects]
    return _changing(
        name,
        lambda c: evolve(c, effects=(*(e for e in c.effects if not any(e.target is t for t in targets)), *effects)),
    )


def not_writing(name: str, *variables: Variable) -> Pieces:
    """A step leaves some variables as they are."""
    return _changing(name, lambda c: evolve(c, effects=tuple(e for e in c.effects if e.variable not in variables)))


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


# Stores


@outcome(Call.ACK, answer=Answer.PERMANENT)
def refused_but_enqueued(i: Item, t: Token) -> Clause:
    """The ack is refused, but its completion was enqueued before that was known."""
    return when(~lock_is_valid(i, t)).then(completions[i].becomes(completions[i] + 1))


@outcome(Call.ACK, answer=Answer.RETRYABLE)
def enqueued_but_not_deleted(i: Item, t: Token) -> Clause:
    """The completion is enqueued in one transaction, and the second one, which deletes the row, fails."""
    return when(lock_is_valid(i, t)).then(completions[i].becomes(completions[i] + 1))


@outcome(*ACKS, answer=Answer.OK)
def ok_without_effect(i: Item, t: Token) -> Clause:
    """An ack with a token that is no longer good is answered ok."""
    return when(~lock_is_valid(i, t))


@outcome(Call.RENEW, answer=Answer.OK, takes_effect=True)
def expired_lock_renewed(i: Item, t: Token) -> Clause:
    """A lock that has expired is renewed."""
    return when(is_current(i, t), row[i] == Row.EXPIRED).then(row[i].becomes(Row.LOCKED))


@outcome(Call.ABANDON, answer=Answer.OK, takes_effect=True)
def acked_item_abandoned(i: Item, t: Token) -> Clause:
    """An item that this token has acked is put back."""
    return when(row[i] == Row.ACKED, acked_by[i] == t).then(row[i].becomes(Row.DELAYED))


@event(Event.EXPIRES)
def recovered_at_boot(i: Item) -> Clause:
    """A starting runtime takes every locked row for an orphan."""
    return when(row[i] == Row.LOCKED).then(row[i].becomes(Row.READY), current[i].becomes(0))


@event(Event.EXPIRES)
def rescued_after_completion(i: Item) -> Clause:
    """The rescuer read that the lock had expired, and writes when the item has been completed."""
    return when(row[i] == Row.ACKED).then(row[i].becomes(Row.READY))


@event(Event.CRASH)
def crash_unlocks(w: Worker, i: Item) -> Clause:
    """The connection of the crashed worker is gone, and its locks with it."""
    return when(working_on[w] == i, current[i] == token[w], row[i] == Row.LOCKED).then(
        forget(w), row[i].becomes(Row.READY), current[i].becomes(0)
    )


# Workers


@reaction(Call.ACK, to=(Answer.RETRYABLE,), counts=Metric.INFRASTRUCTURE_ERROR)
def abandons_at_once(w: Worker, i: Item) -> Clause:
    """The first retryable error ends the sequence: the item is given back."""
    return when(in_sequence(w)).then(
        phase[w].becomes(Phase.ABANDONING),
        attempts[w].becomes(attempts[w] + 1),
        last[w].becomes(Last.RETRYABLE),
        renewing[w].becomes(False),
    )


@reaction(Call.ACK, to=(Answer.PERMANENT,))
def retries_a_refusal(w: Worker, i: Item) -> Clause:
    """A permanent error is taken for a retryable one."""
    return when(in_sequence(w)).then(attempts[w].becomes(attempts[w] + 1), last[w].becomes(Last.PERMANENT))


@reaction(Call.ACK, to=(Answer.PERMANENT,))
def retries_a_refusal_for_ever(w: Worker, i: Item) -> Clause:
    """The same settle is sent again without being counted."""
    return when(in_sequence(w))


@reaction(Call.ACK, to=(Answer.RETRYABLE,))
def retries_for_ever(w: Worker, i: Item) -> Clause:
    """Attempts are not counted: there is always another one."""
    return when(in_sequence(w)).then(last[w].becomes(Last.RETRYABLE))


@reaction(Call.ACK, to=(Answer.RETRYABLE,), counts=Metric.SUCCESS)
def takes_a_timeout_for_success(w: Worker, i: Item) -> Clause:
    """No answer within the time is taken for a good one."""
    return when(in_sequence(w)).then(forget(w))


@reaction(Call.ACK, to=(Answer.RETRYABLE,))
def drops_it_silently(w: Worker, i: Item) -> Clause:
    """The budget is spent: the worker drops the result and tells nobody."""
    return when(in_sequence(w), attempts[w] + 1 >= rule.ack_attempts).then(forget(w))


@reaction(Call.ACK, to=(Answer.PERMANENT,), counts=Metric.UNCERTAIN)
def uncertain_and_again(w: Worker, i: Item) -> Clause:
    """The uncertain delivery stays in hand, and its ack is sent again."""
    return when(in_sequence(w), attempts[w] > 0)


@reaction(*ABANDONS, to=(Answer.RETRYABLE, Answer.PERMANENT))
def abandons_until_it_works(w: Worker, i: Item) -> Clause:
    """A failed abandon is sent again."""
    return when(phase[w] == Phase.ABANDONING)


@reaction(Call.RENEW, to=(Answer.RETRYABLE,))
def goes_on_without_renewing(w: Worker, i: Item) -> Clause:
    """One failed renewal ends the renewing, and the handler runs on."""
    return when(phase[w] == Phase.HANDLING, renewing[w]).then(renewing[w].becomes(False))


@reaction(Call.RENEW, to=(Answer.PERMANENT,))
def lets_the_handler_run_on(w: Worker, i: Item) -> Clause:
    """The lock is lost, and the handler is not told."""
    return when(phase[w] == Phase.HANDLING, renewing[w])


@event(Event.HANDLER_STOPPED)
def stopped_handler_is_acked(w: Worker, i: Item) -> Clause:
    """The handler was told to stop and ended with a result all the same: its completion is sent."""
    return when(phase[w] == Phase.STOPPING, working_on[w] == i).then(
        phase[w].becomes(Phase.ACKING), result[w].becomes(Result.SUCCESS)
    )


def _refusals_retried(piece: Piece) -> Pieces:
    silenced = PIECES.replaced(lambda p: evolve(p, calls=()) if p.name.startswith("refusal_") else p)
    return evolve(silenced, reactions=(*silenced.reactions, piece))


def _mistakes() -> Iterator[Mistake]:
    valid, own = lock_is_valid(I, T), is_current(I, T)
    expired_too = own & ((row[I] == Row.LOCKED) | (row[I] == Row.EXPIRED))
    yield Mistake("ack accepts a superseded token", "S5", guarded("ack_committed", valid, in_queue(I)))
    yield Mistake("renew accepts a superseded token", "S5", guarded("renewed", valid, row[I] == Row.LOCKED))
    yield Mistake("abandon accepts a superseded token", "S5", guarded("abandoned", own, in_queue(I)))
    yield Mistake("ack accepts an expired lock", "S5", guarded("ack_committed", valid, expired_too))
    yield Mistake("renew revives an expired lock", "S5", answering(expired_lock_renewed))
    yield Mistake("ack answers ok for a token that is no longer good", "S5", answering(ok_without_effect))
    yield Mistake("a refused ack enqueues its completion", "S3", answering(refused_but_enqueued))
    yield Mistake("ack enqueues in one transaction and deletes in another", "S3", answering(enqueued_but_not_deleted))
    yield Mistake("ack deletes the row and enqueues nothing", "S3", not_writing("ack_committed", completions))
    yield Mistake("ack enqueues and leaves the row", "S2", not_writing("ack_committed", row, current))
    yield Mistake("a cancellation ack enqueues a completion", "S3", writing("cancellation_ack_committed", completions[I].becomes(completions[I] + 1)))
    yield Mistake("fetch hands out a locked row", "S6", guarded("fetched", fetchable(I), fetchable(I) | (row[I] == Row.LOCKED)))
    yield Mistake("fetch hands out a row that is still delayed", "C1", guarded("fetched", fetchable(I), fetchable(I) | (row[I] == Row.DELAYED)))
    yield Mistake("fetch deletes the row", "S12", writing("fetched", row[I].becomes(Row.ACKED), current[I].becomes(0)))
    yield Mistake("the next delivery has the same token", "S4", not_writing("fetched", issued))
    yield Mistake("fetch answers nothing although an item waits", "C1", guarded("nothing_to_fetch", _sentence("nothing_to_fetch").clause.guards[0], TRUE))
    yield Mistake("a row that is gone is fetched again", "S4", guarded("fetched", fetchable(I), fetchable(I) | (row[I] == Row.CANCELLED)))
    yield Mistake("the attempt count does not go up", "C2", not_writing("fetched", attempt_count))
    yield Mistake("abandon resets the attempt count", "C2", writing("abandoned", attempt_count[I].becomes(0)))
    yield Mistake("abandon of an acked item puts it back", "S4", answering(acked_item_abandoned))
    yield Mistake("abandon leaves the token on the row", "S4", not_writing("abandoned", current))
    yield Mistake("a lock never expires", "stuck", never("lock_expires"))
    yield Mistake("an expired lock kills the item at once", "C6", writing("lock_expires", row[I].becomes(Row.CANCELLED)))
    yield Mistake("a starting runtime recovers items that are being worked on", "S6", happening(recovered_at_boot))
    yield Mistake("a rescuer puts a completed item back", "S4", happening(rescued_after_completion))
    yield Mistake("a crash unlocks the row", "C6", happening(crash_unlocks))
    yield Mistake("a locked row becomes visible when its delay would be over", "S6", _changing("item_becomes_visible", lambda c: when((row[I] == Row.DELAYED) | (row[I] == Row.LOCKED)).then(*c.effects, current[I].becomes(0))))
    yield Mistake("cancel enqueues a completion", "S3", writing("cancelled", completions[I].becomes(completions[I] + 1)))
    yield Mistake("cancel leaves the lock", "S4", not_writing("cancelled", current))

    yield Mistake("the worker abandons after one retryable error", "S10", reacting(abandons_at_once, "will_try_again"))
    yield Mistake("a permanent error is retried", "S9", _refusals_retried(retries_a_refusal))
    yield Mistake("a permanent error is retried for ever", "S9", _refusals_retried(retries_a_refusal_for_ever))
    yield Mistake("a retryable error is retried for ever", "S9", reacting(retries_for_ever, "will_try_again"))
    yield Mistake("a sixth attempt is made", "S9", guarded("will_try_again", attempts[W] + 1, attempts[W] + 0))
    yield Mistake("a timeout is taken for success", "C7", reacting(takes_a_timeout_for_success))
    yield Mistake("the spent budget is not told", "C7", reacting(drops_it_silently, "gives_up_and_abandons"))
    yield Mistake("uncertain is counted as a failure too", "S13", counting("refusal_is_uncertain", Metric.INFRASTRUCTURE_ERROR))
    yield Mistake("an uncertain delivery is acked again", "S7", reacting(uncertain_and_again, "refusal_is_uncertain"))
    yield Mistake("an uncertain delivery is abandoned", "S7", writing("refusal_is_uncertain", *_sentence("refusal_is_uncertain_and_abandoned").clause.effects))
    yield Mistake("a first permanent error is called uncertain", "S8", _changing("refusal_is_uncertain", lambda c: when(in_sequence(W)).then(*c.effects)))
    yield Mistake("a lost lock is called success", "C7", counting("refusal_is_a_failure", Metric.SUCCESS))
    yield Mistake("the poison ack is counted although it failed", "S14", _changing("poison_is_counted_whatever_the_answer", lambda c: when(phase[W] == Phase.ACKING, result[W] == Result.POISON).then(*c.effects)))
    yield Mistake("the handler of a poison item runs", "C3", writing("finds_poison", phase[W].becomes(Phase.FETCHED)))
    yield Mistake("poison is found one delivery late", "C3", guarded("finds_poison", attempt_count[I] + 1, attempt_count[I] + 0))
    yield Mistake("a cancellation ack is retried", "S9", writing("cancellation_ack_failed", phase[W].becomes(Phase.CANCELLING)))
    yield Mistake("a handler that was told to stop has its result acked", "C5", happening(stopped_handler_is_acked))
    yield Mistake("a handler whose lock is lost runs on", "C5", reacting(lets_the_handler_run_on, "cancels_at_a_permanent_renewal_error"))
    yield Mistake("one failed renewal ends the renewing, the handler runs on", "C5", reacting(goes_on_without_renewing, "cancels_at_a_retryable_renewal_error"))
    yield Mistake("the lock is not renewed", "C5", writing("takes_it_in_hand", renewing[W].becomes(False)))
    yield Mistake("renewing ends when the handler does", "R9", writing("handler_succeeds", renewing[W].becomes(False)))
    yield Mistake("renewing goes on when the handler was told to stop", "C5", not_writing("cancels_at_a_retryable_renewal_error", renewing))
    yield Mistake("renewing goes on after a shutdown", "C5", not_writing("shutdown_begins", renewing))
    yield Mistake("a worker fetches while it shuts down", "C1", guarded("takes_it_in_hand", may_fetch(W), phase[W] == Phase.IDLE))
    yield Mistake("a worker fetches while it has work in hand", "C1", guarded("takes_it_in_hand", may_fetch(W), ~draining[W]))
    yield Mistake("an abandon is sent until it works", "C6", only("abandon_is_best_effort", Answer.OK, plus=abandons_until_it_works))
    yield Mistake("a worker that crashed goes on with its token", "C6", _changing("worker_crashes", lambda c: evolve(c, effects=())))
    yield Mistake("an item without a handler is acked", "S9", writing("handler_is_missing", phase[W].becomes(Phase.ACKING)))


MISTAKES = tuple(_mistakes())
