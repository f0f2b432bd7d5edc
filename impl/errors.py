"""The two ways a store can refuse a call."""


class StoreError(Exception):
    """A store call that did not answer ok.

    `operation` names the call, `message` says what went wrong. `retryable` is true when the same
    call may be repeated as it is; whether it took effect is then unknown to the caller.
    """

    def __init__(self, operation: str, message: str, retryable: bool) -> None:
        # No call of super().__init__: the exception already holds the arguments of the class that
        # was called, and copying and pickling need those.
        self.operation = operation
        self.message = message
        self.retryable = retryable

    def __str__(self) -> str:
        kind = "retryable" if self.retryable else "permanent"
        return f"{self.operation}: {self.message} ({kind})"


class RetryableError(StoreError):
    """Busy, locked, lost connection, failed commit: the whole call may be repeated."""

    def __init__(self, operation: str, message: str) -> None:
        super().__init__(operation, message, True)


class PermanentError(StoreError):
    """A dead token, malformed input, corrupt data: repeating the call cannot help."""

    def __init__(self, operation: str, message: str) -> None:
        super().__init__(operation, message, False)
