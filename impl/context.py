"""What the parts of one worker share: its clock, its policy, and whom it tells."""

import enum

from attrs import define

from peeklock.impl.clock import Clock
from peeklock.impl.effects import Answer, Call, Ok, Refused, Steps
from peeklock.impl.events import Called, Counted, Event, Observer, ShutdownRequested
from peeklock.impl.metrics import Metrics
from peeklock.impl.policy import Policy


class Verdict(enum.Enum):
    """What one cycle of a worker came to, as far as the worker knows."""

    STOPPED = "stopped"
    """Shutdown was requested earlier: nothing was fetched."""
    FETCH_FAILED = "fetch failed"
    IDLE = "idle"
    """There was nothing to fetch."""
    SUCCESS = "success"
    APPLICATION_ERROR = "application error"
    POISON = "poison"
    CANCELLED = "cancelled"
    """A cancellation ack was answered ok."""
    ABANDONED = "abandoned"
    """Given back without a verdict on the work; the answer may have been an error."""
    FAILED = "failed"
    """An infrastructure error: the ack failed."""
    UNCERTAIN = "uncertain"
    LEFT = "left"
    """Left to its lock without a verdict on the work."""
    DROPPED = "dropped"
    """The shutdown grace was over."""


class GraceOver(Exception):
    """Ends a cycle from within, without a further call."""


@define
class Context:
    """The state of a worker that outlives a delivery, and the two ways to the outside: call and tell."""

    name: str
    clock: Clock
    policy: Policy
    metrics: Metrics
    observer: Observer | None
    drop_at_ms: int | None = None
    """The end of the shutdown grace; None as long as no shutdown was requested."""

    def now_ms(self) -> int:
        """The time on the worker's clock, in milliseconds."""
        return self.clock.now_ms()

    def tell(self, event: Event) -> None:
        """Pass the event on to the observer, if there is one."""
        if self.observer is not None:
            self.observer(event)

    def count(self, name: str, token: str) -> None:
        """Count the metric `name` once, for the delivery `token`."""
        self.metrics.count(name)
        self.tell(Counted(self.name, self.now_ms(), token, name))

    def request_shutdown(self) -> None:
        """Begin the shutdown grace. A second request changes nothing."""
        if self.drop_at_ms is None:
            now_ms = self.now_ms()
            self.drop_at_ms = now_ms + self.policy.shutdown_grace_ms
            self.tell(ShutdownRequested(self.name, now_ms, self.drop_at_ms))

    def is_grace_over(self) -> bool:
        """Whether work in hand must be dropped; at the grace's last millisecond it must."""
        return self.drop_at_ms is not None and self.now_ms() >= self.drop_at_ms

    def before_drop(self, until_ms: int) -> int:
        """`until_ms`, or the end of the shutdown grace if that comes first."""
        return until_ms if self.drop_at_ms is None else min(until_ms, self.drop_at_ms)

    def call(self, call: Call) -> Steps[Answer]:
        """Make one store call. GraceOver when it may not begin any more."""
        if self.is_grace_over():
            raise GraceOver
        asked_ms = self.now_ms()
        answer = yield call
        if not isinstance(answer, Ok | Refused):
            raise TypeError(f"{call} must be answered with Ok or Refused, not {answer!r}")
        self.tell(Called(self.name, self.now_ms(), asked_ms, call, answer))
        return answer
