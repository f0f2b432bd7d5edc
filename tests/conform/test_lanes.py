"""Tales: what is told of a run that goes wrong, and that every renderer tells all of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from attrs import evolve
from browser import Browser
from tales import (
    HOSTILE,
    LOCKED_ITEM,
    LOST_ITEM,
    STALE_TOKEN,
    acked,
    enqueued,
    fetched,
    hostile,
    nothing_fetched,
    of_a_store,
    of_a_worker,
)

from peeklock.harness.run.store_judge import StoreJudge
from peeklock.harness.story.lanes import as_text, cells_of, steps_as_text
from peeklock.harness.story.lanes_markdown import as_markdown, as_mermaid
from peeklock.harness.story.page import as_html
from peeklock.harness.story.story import MOST_ALIKE, Tale, TaleStep, folded, tale_of_steps
from peeklock.harness.story.story_of_run import MOST_STEPS, tell
from peeklock.spec.notation.actions import Answer
from peeklock.spec.reading.narrative import Line
from peeklock.spec.variants.capabilities import STANDARD

TALES = {
    "stale token": of_a_store(*STALE_TOKEN),
    "locked item": of_a_store(*LOCKED_ITEM),
    "lost item": of_a_store(*LOST_ITEM),
    "hostile names": hostile(),
    "worker": of_a_worker(),
}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


# What is told


def test_a_stale_token_is_told_with_what_was_answered_what_was_right_and_what_was_true() -> None:
    tale = TALES["stale token"]
    assert tale.found == (
        "Step 4: worker A acks i1 under t1 with a result; the store answers: ok.",
        "The store should have refused this: i1 is locked under t2 until 200 ms.",
    )
    assert tale.allowed == ("ack → permanent error",)
    assert tale.before == (("i1 is locked under t2 until 200 ms, attempt count 2",),)
    assert "S5" in [pid for pid, _ in tale.promises]
    assert tale.marked == tale.steps[-1]


def test_time_that_changes_something_is_a_step_of_its_own_without_a_number() -> None:
    passed = [s for s in TALES["stale token"].steps if s.number is None]
    assert [(s.does, s.truth, s.at_ms) for s in passed] == [
        ("time passes", ("i1's lock t1 has expired",), 100)
    ]


def test_an_item_that_is_locked_may_not_be_handed_out() -> None:
    tale = TALES["locked item"]
    assert tale.found[1] == "This could not be handed out now: i1 is locked under t1 until 100 ms."
    assert tale.allowed[0] == "fetch → nothing"


def test_an_item_that_was_lost_is_named_as_what_should_have_been_handed_out() -> None:
    tale = TALES["lost item"]
    assert tale.allowed[0] == "fetch → i1"
    assert tale.before == (("i1's lock t1 has expired, attempt count 1",),)


def test_a_token_that_is_given_out_twice_should_have_been_a_fresh_one() -> None:
    tale = of_a_store(enqueued(), fetched(0, "t1", 1), fetched(100, "t1", 2, "B"))
    assert tale.allowed[0] == "fetch → i1 under a fresh token, attempt count 2"


def test_a_response_that_was_lost_leaves_both_possibilities_in_the_truth() -> None:
    lost = acked(10, "t1", Answer.RETRYABLE)
    tale = of_a_store(enqueued(), fetched(0, "t1", 1), lost, lost)
    (third, fourth) = tale.steps[2:]
    assert third.answered == "retryable error (whether it took effect is not known)"
    assert third.truth == (
        "i1 is locked under t1 until 100 ms, or i1's row is deleted, its completion is enqueued",
    )
    assert fourth.truth_told == ("still one of 2",)
    assert (tale.marked, tale.found, tale.before) == (None, (), ())


def test_what_is_known_of_an_effect_is_told() -> None:
    after = of_a_store(enqueued(), fetched(0, "t1", 1), acked(1, "t1", Answer.RETRYABLE, effect=True))
    assert after.steps[-1].sentence.endswith("retryable error (the response was lost: it took effect)")
    before = of_a_store(enqueued(), fetched(0, "t1", 1), acked(1, "t1", Answer.RETRYABLE, effect=False))
    assert before.steps[-1].sentence.endswith("retryable error (it had no effect)")


def test_a_worker_that_goes_wrong_is_told_with_what_it_believes_and_might_have_done() -> None:
    tale = TALES["worker"]
    assert tale.steps[3].belief == ("is in its ack sequence",)
    assert tale.found[0] == "Step 6: worker A abandons i1 under t1; the store answers: ok."
    assert "ack" in tale.allowed[0]
    assert tale.allowed[0].startswith("another call: ")
    assert not any("crashes" in text for text in tale.allowed)
    assert "S10" in [pid for pid, _ in tale.promises]
    assert len(tale.before) > 1


def test_something_else_than_the_monitor_may_say_what_is_wrong() -> None:
    tale = tell(
        (enqueued(), fetched(0, "t1", 1)),
        lambda: StoreJudge(STANDARD),
        reason="it took 9 s",
        allowed=("fetch -> i1 within 1 s",),
        promises=("C1",),
    )
    assert tale.found[1] == "It took 9 s."
    assert tale.allowed == ("fetch → i1 within 1 s",)
    assert tale.promises[0][0] == "C1"
    assert tale.steps[-1].mark == "it took 9 s"


def test_what_did_not_come_can_be_what_is_wrong() -> None:
    run = (enqueued(), fetched(0, "t1", 1))
    tale = tell(
        run,
        lambda: StoreJudge(STANDARD),
        then=(TaleStep(None, "worker A", "waits"), TaleStep(None, "worker A", "waits on", at_ms=90)),
        reason="i1 was not renewed",
    )
    assert tale.steps[-2:] == (
        TaleStep(3, "worker A", "waits"),
        TaleStep(4, "worker A", "waits on", at_ms=90, mark="i1 was not renewed"),
    )
    assert tale.found == ("Step 4: worker A: waits on.", "i1 was not renewed.")


def test_the_last_that_was_seen_can_be_wrong_although_the_monitor_allows_it() -> None:
    tale = tell((enqueued(), fetched(0, "t1", 1)), lambda: StoreJudge(STANDARD), reason="it took 9 s")
    assert len(tale.steps) == 2
    assert tale.before == (("i1 is visible and unlocked",),)


def test_what_came_after_is_told_as_it_was_seen() -> None:
    tale = of_a_store(*LOCKED_ITEM, acked(99, "t2", worker="B"), acked(99, "t1"))
    assert tale.marked == tale.steps[2]
    assert tale.found[0].startswith("Step 3: ")
    assert [(s.number, s.answered, s.truth) for s in tale.steps[3:]] == [(4, "ok", ()), (5, "ok", ())]


def test_steps_that_repeat_are_told_in_one_with_what_grows() -> None:
    rounds = range(MOST_ALIKE + 1)
    worn = [fetched(10 * n, f"t{n + 1}", n + 1, f"w{n + 1}", lasts_ms=10) for n in rounds]
    tale = of_a_store(enqueued(), *worn, nothing_fetched(60))
    assert [s.number for s in tale.steps] == [1, None, MOST_ALIKE + 3]
    assert tale.steps[1].does == (
        "6 times, steps 2 to 7: worker w1 to w6: fetch with a lock of 10 ms → i1 under t1 to t6, attempt count 1 to 6; "
        "i1's lock t1 to t6 has expired"
    )
    assert tale.steps[1].truth == ("i1's lock t6 has expired",)
    assert len(of_a_store(enqueued(), *worn[1:]).steps) > MOST_ALIKE


def test_what_several_do_by_turns_is_told_in_one_and_nobody_is_left_believing_something() -> None:
    turns = (
        TaleStep(1, "worker A", "renew t1", "ok", belief=("goes on",), faults=("a",)),
        TaleStep(2, "worker B", "ack t2", note="it had no effect", belief=("waits",), truth=("gone",)),
    )
    steps = [evolve(s, number=s.number + 2 * n) for n in range(9) for s in turns if s.number]
    told = "9 times, steps 1 to 18: worker A: renew t1 → ok; worker B: ack t2 (it had no effect)"
    assert folded(steps) == (TaleStep(None, "", told, truth=("gone",), faults=("a",)),)
    assert folded(steps[: 2 * MOST_ALIKE]) == tuple(steps[: 2 * MOST_ALIKE])


def test_steps_are_not_told_in_one_that_differ_unevenly() -> None:
    polls = [evolve(nothing_fetched(n), lasts_ms=100 + (n == 3)) for n in range(MOST_ALIKE + 2)]
    assert len(of_a_store(*polls).steps) == len(polls)
    assert len(of_a_store(*(evolve(p, lasts_ms=100) for p in polls)).steps) == 1


def test_long_names_get_short_ones_and_a_legend() -> None:
    token = "0b9f6f0e-9a41-4a53-93d4-8c26f3a7b0c1"
    tale = of_a_store(enqueued(), fetched(0, token, 1), fetched(50, "t2", 2, "B"))
    assert tale.names == (("t1", token),)
    assert "under t1" in tale.found[1]


def test_a_run_that_was_timed_from_a_date_is_told_from_its_beginning() -> None:
    start_ms = 1_764_000_000_000
    tale = of_a_store(enqueued(start_ms), fetched(start_ms + 5, "t1", 1))
    assert [s.at_ms for s in tale.steps] == [0, 5]
    assert tale.names == (("0 ms", f"{start_ms} ms on the clock of the run"),)


def test_of_a_long_run_the_steps_about_other_items_are_left_out() -> None:
    others = [enqueued(item=f"o{n}") for n in range(MOST_STEPS)]
    tale = of_a_store(enqueued(), fetched(0, "t1", 1), *others, fetched(99, "t2", 2, "B"))
    assert [s.number for s in tale.steps] == [1, 2, None, MOST_STEPS + 3]
    assert tale.steps[2].does == f"({MOST_STEPS} steps are left out)"
    assert tale.before == (("i1 is locked under t1 until 100 ms, attempt count 1",),)


def test_one_step_that_would_be_left_out_is_told() -> None:
    others = [enqueued(item=f"o{n}") for n in range(MOST_STEPS)]
    tale = of_a_store(enqueued(), others[0], fetched(0, "t1", 1), *others[1:], fetched(99, "t2", 2, "B"))
    assert [s.number for s in tale.steps] == [1, 2, 3, None, MOST_STEPS + 3]


def test_of_nothing_no_tale_is_told() -> None:
    with pytest.raises(ValueError, match="nothing was seen"):
        of_a_store()


def test_a_trace_of_the_model_is_the_same_kind_of_tale() -> None:
    lines = [
        Line("orchestrator", "enqueue i1", "", ("i1 waits for its delay",), (), ()),
        Line(
            "worker A",
            "ack t1 with a result",
            "retryable error",
            ("gone",),
            (),
            ("response-lost",),
        ),
        Line("worker A", "renew t1", "retryable error", (), ("stops",), ("renewal-retryable",)),
    ]
    tale = tale_of_steps(lines, title="a trace", broken_at=2, promises=("S12",))
    assert [s.sentence for s in tale.steps] == [
        "orchestrator enqueues i1",
        "worker A acks t1 with a result; the store answers: retryable error (the response was lost: it took effect)",
        "worker A renews t1; the store answers: retryable error (it had no effect)",
    ]
    assert tale.lanes == ("worker A",)
    assert tale.promises[0][1].startswith("no lost work")


def test_lanes_stand_by_name_and_not_in_the_order_in_which_they_come_in() -> None:
    steps = [TaleStep(k, who, "fetch") for k, who in enumerate(("worker 10", "time", "worker 2", "worker B"))]
    assert Tale("a trace", tuple(steps)).lanes == ("worker 2", "worker 10", "worker B")


# Text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
@pytest.mark.parametrize("name", TALES)
def test_text_keeps_within_its_columns_and_loses_no_word(name: str, width: int) -> None:
    tale = TALES[name]
    text = as_text(tale, width)
    assert max(cells_of(line) for line in text.splitlines()) <= width
    assert text == "\n".join(line.rstrip() for line in text.splitlines())
    for words in all_texts(tale):
        told = set(re.findall(r"\w+", text))
        assert set(re.findall(r"\w+", words)) <= told or "".join(words.split()) in "".join(text.split())


@pytest.mark.parametrize("name", TALES)
def test_colour_is_the_only_difference_on_a_terminal(name: str) -> None:
    coloured = as_text(TALES[name], 80, colour=True)
    assert "\x1b[" in coloured
    assert COLOUR.sub("", coloured) == as_text(TALES[name], 80)


def test_lanes_stand_side_by_side_where_they_fit_and_else_the_steps_stand_below_each_other() -> None:
    wide, narrow = (steps_as_text(TALES["stale token"], width).splitlines() for width in (100, 60))
    assert wide[0].split() == ["ms", "worker", "A", "worker", "B", "store", "truth"]
    assert narrow[0].split() == ["1", "0", "ms", "orchestrator:", "enqueue", "i1"]
    assert [line.split() for line in narrow if line.split()[0] == "store"][-1] == ["store", "→", "ok"]


def test_wide_characters_take_two_columns() -> None:
    assert cells_of("注文") == 4
    tale = of_a_store(enqueued(item="注文" * 4), fetched(0, "t1", 1, item="注文" * 4))
    assert all(cells_of(line) <= 60 for line in as_text(tale, 60).splitlines())


# Markdown and Mermaid


def cells_of_row(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line))


@pytest.mark.parametrize("name", TALES)
def test_markdown_has_a_row_for_each_step_and_the_diagram(name: str) -> None:
    tale = TALES[name]
    text = as_markdown(tale)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == len(tale.steps) + 2
    assert len({cells_of_row(line) for line in rows}) == 1
    assert text.count("```") == 2
    before = text[: text.index("```mermaid")]
    assert not re.search(r"(?<!\\)<(?!br>)", before)
    assert "[x](" not in before


@pytest.mark.parametrize("name", TALES)
def test_every_line_of_a_mermaid_diagram_is_one_of_its_own(name: str) -> None:
    kinds = (
        r"sequenceDiagram",
        r"    participant (o|w\d+|store)( as .+)?",
        r"    (o|w\d+)->>store: .+",
        r"    store--(>>|x)(o|w\d+): .+",
        r"    Note over (o|w\d+|store): .+",
    )
    for line in as_mermaid(TALES[name]).splitlines():
        assert any(re.fullmatch(kind, line) for kind in kinds), line
        assert not re.search(r"[<>`;]", re.sub(r"#\d+;|--?>>", "", line)), line


# The page


class Page(HTMLParser):
    """The text of a page, its elements, and every address in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.addresses += [str(v) for k, v in attrs if k in ("src", "href", "action", "srcset", "data")]

    def handle_data(self, data: str) -> None:
        self.words += data.split()


def all_texts(tale: Tale) -> list[str]:
    """All that a tale says."""

    def of(step: TaleStep) -> list[str]:
        return [step.does, step.answer, step.note, *step.truth, *step.belief, *step.faults, step.mark]

    ends = [*tale.found, *tale.allowed, *(s for state in tale.before for s in state), *tale.notes]
    return [
        tale.title,
        *(t for pair in tale.promises for t in pair),
        *(t for s in tale.steps for t in of(s)),
        *ends,
    ]


@pytest.mark.parametrize("name", TALES)
def test_the_page_tells_all_and_asks_for_nothing(name: str) -> None:
    tale = TALES[name]
    page = Page(as_html(tale, {"reproduce.py": "if 1 < 2: print('&amp;')"}))
    joined = "".join(page.words)
    for words in all_texts(tale):
        assert "".join(words.split()) in joined
    assert "if1<2:print('&amp;')" in joined
    assert page.addresses == []
    assert page.elements.count("script") == 1
    assert page.elements.count("style") == 1
    assert not {"link", "img", "iframe", "object", "base", "form"} & set(page.elements)
    assert page.elements.count("tr") == len(tale.steps) + 1


def test_what_comes_from_outside_is_text_on_the_page_and_nothing_else() -> None:
    assert HOSTILE not in as_html(TALES["hostile names"], {HOSTILE: HOSTILE})
    assert "<script>alert" not in as_html(TALES["hostile names"], {HOSTILE: HOSTILE})


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "failure.html"
    path.write_text(as_html(TALES["stale token"], {"trace.jsonl": "{}\n" * 200}), encoding="utf-8")
    return path


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_in_a_browser_the_step_that_is_wrong_is_in_view_and_nothing_is_loaded(page: Path, width: int) -> None:
    with Browser(page, width, 800) as tab:
        place = tab.value(
            "(r => [r.top, r.bottom])(document.querySelector('tr.wrong').getBoundingClientRect())"
        )
        bar = tab.value("document.querySelector('#now').getBoundingClientRect().top")
        assert 0 <= place[0] < place[1] <= bar
        assert tab.value("document.documentElement.scrollWidth") <= width
        assert tab.requested() == [page.resolve().as_uri()]
        assert tab.complaints() == []


@pytest.mark.browser
def test_in_a_browser_keys_go_from_step_to_step(page: Path) -> None:
    chosen = "document.querySelector('tr.chosen .number').textContent"
    with Browser(page, 1280, 800) as tab:
        found = [tab.value(chosen)]
        for key in ("k", "ArrowUp", "ArrowUp", "Home", "k", "j", "ArrowDown", "x", "j"):
            tab.press(key)
            found.append(tab.value(chosen))
        assert found == ["✗ 4", "3", "", "2", "1", "1", "2", "", "✗ 4", "✗ 4"]
        assert tab.value("document.querySelector('#now p').textContent").startswith(
            "4. worker A acks i1 under t1"
        )


@pytest.mark.browser
def test_in_a_browser_the_page_is_light_or_dark_as_the_reader_likes_it(page: Path) -> None:
    def paper(dark: bool) -> list[int]:
        with Browser(page, 1280, 800, dark) as tab:
            colour = tab.value("getComputedStyle(document.body).backgroundColor")
            return [int(n) for n in re.findall(r"\d+", colour)]

    assert min(paper(dark=False)) > 200
    assert max(paper(dark=True)) < 60
