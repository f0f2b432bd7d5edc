"""Counters of what a worker made of its deliveries."""

from collections import Counter

SUCCESS = "duroxide_activity_success_total"
"""A result's ack was answered ok."""

APPLICATION_ERROR = "duroxide_activity_app_errors_total"
"""An application error's ack was answered ok."""

INFRASTRUCTURE_ERROR = "duroxide_activity_infra_errors_total"
"""The worker gave a delivery up because its ack failed."""

POISON = "duroxide_activity_poison_total"
"""An item was delivered more often than allowed."""

UNCERTAIN = "duroxide_activity_ack_uncertain_total"
"""Whether the ack took effect cannot be known from the answers."""

NAMES = (SUCCESS, APPLICATION_ERROR, INFRASTRUCTURE_ERROR, POISON, UNCERTAIN)


class Metrics:
    """Counts per name. Workers may share one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def count(self, name: str) -> None:
        """Add one to `name`, which must be one of NAMES; ValueError if not."""
        if name not in NAMES:
            raise ValueError(f"no such metric: {name}")
        self._counts[name] += 1

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    def as_dict(self) -> dict[str, int]:
        """The counts that are not zero, by name."""
        return {name: self._counts[name] for name in NAMES if self._counts[name]}
