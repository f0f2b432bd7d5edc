"""The demo prints the same two stories every time, and refuses what it does not know."""

import pytest

from peeklock.impl.demo import main

RETRIED = """\
retried:
     0 ms  fetch -> item-1 under lock-1
     0 ms  handler starts on item-1, attempt 1
     0 ms  handler ends: charged 42 EUR
     0 ms  ack lock-1 -> retryable error: injected: busy, or the response was lost
   100 ms  ack lock-1 -> retryable error: injected: busy, or the response was lost
   300 ms  ack lock-1 -> ok
   300 ms  counted duroxide_activity_success_total
  verdict: success
  handler runs: 1, abandons: 0, rows left: 0, completions: 1
"""
UNCERTAIN = """\
uncertain:
     0 ms  fetch -> item-1 under lock-1
     0 ms  handler starts on item-1, attempt 1
     0 ms  handler ends: charged 42 EUR
     0 ms  ack lock-1 -> retryable error: injected: busy, or the response was lost
   100 ms  ack lock-1 -> permanent error: token 'lock-1' is not current
   100 ms  counted duroxide_activity_ack_uncertain_total
  verdict: uncertain
  handler runs: 1, abandons: 0, rows left: 0, completions: 1
"""


@pytest.mark.parametrize(
    ("arguments", "output"),
    [([], RETRIED + UNCERTAIN), (["retried"], RETRIED), (["uncertain"], UNCERTAIN)],
)
def test_the_output_is_always_the_same(
    capsys: pytest.CaptureFixture[str], arguments: list[str], output: str
) -> None:
    assert main(arguments) == 0

    assert capsys.readouterr() == (output, "")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["retried", "uncertain"], [""], ["--trace", "f"], ["retried", "--trace"]]
)
def test_a_bad_argument_gets_one_line_on_stderr(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: python -m peeklock.impl.demo [retried | uncertain] [--trace FILE")
    assert err.count("\n") == 1
