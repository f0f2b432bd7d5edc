"""Changes that mutate.py makes and that make no difference, each with the reason."""

EQUIVALENT: dict[str, str] = {}
