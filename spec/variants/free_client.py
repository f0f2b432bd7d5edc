"""Any client: callers that present any token that they ever held, as often as they like, in any order.

With these in the workers' place the store stands alone: what it promises, it promises whatever its callers do.
"""

from __future__ import annotations

from peeklock.spec.compose import compose
from peeklock.spec.law import environment
from peeklock.spec.law.state import Phase, Result, issued, phase, result, token, working_on
from peeklock.spec.notation.actions import (
    ABANDONS,
    ACKS,
    Answer,
    Call,
    Clause,
    Item,
    Piece,
    Worker,
    reaction,
    when,
)


@reaction(Call.FETCH, to=(Answer.OK,))
def holds_it(w: Worker, i: Item) -> Clause:
    """The client keeps the token for ever."""
    return when(
        phase[w] == Phase.IDLE,
    ).then(
        phase[w].becomes(Phase.ACKING),
        working_on[w].becomes(i),
        token[w].becomes(issued[i] + 1),
        result[w].becomes(Result.SUCCESS),
    )


@reaction(Call.FETCH, to=(Answer.NOTHING, Answer.RETRYABLE))
def asks_again(w: Worker) -> Clause:
    """The client has got nothing."""
    return when(
        phase[w] == Phase.IDLE,
    )


@reaction(Call.RENEW, *ACKS, *ABANDONS, to=(Answer.OK, Answer.RETRYABLE, Answer.PERMANENT))
def goes_on(w: Worker, i: Item) -> Clause:
    """Whatever the answer, the client may present the token again."""
    return when(
        phase[w] == Phase.ACKING,
    )


REACTIONS: tuple[Piece, ...] = (holds_it, asks_again, goes_on)


STORE_ALONE = tuple(
    compose(
        reactions=REACTIONS,
        events=(environment.item_becomes_visible, environment.lock_expires),
        by_policy=False,
    )
)
"""The store with clients that do anything."""
