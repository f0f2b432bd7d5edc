"""The page of ``peeklock explore`` in a browser: one file, keys, links, any width, light and dark."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from attrs import evolve
from browser import Browser
from wandering import world_of

from peeklock.cli.explore.load import Run
from peeklock.cli.explore.page import as_page
from peeklock.model.explore.walks import Explorer, position
from peeklock.model.search.verdicts import check
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.policy import RETRY
from peeklock.spec.law.state import excused, ran

WORLD = world_of(RETRY, items=1)
LARGEST = 400 * 1024
CHOICES = "[...document.querySelectorAll('#next .choice .does')].map(e => e.textContent)"
PLACE = "document.querySelector('#place').textContent"


@pytest.fixture(scope="module")
def s12() -> Run:
    (judged,) = check(WORLD, tuple(p for p in PROMISES if p.id == "S12"), (), with_causes=False).promises
    return Run("S12 broken", position(WORLD, judged.broken[0].trace.steps))


@pytest.fixture
def page(tmp_path: Path, s12: Run) -> Path:
    path = tmp_path / "explore.html"
    path.write_text(as_page(Explorer(WORLD), [s12]), encoding="utf-8")
    return path


class _Addresses(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.elements: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.found += [str(v) for k, v in attrs if k in ("src", "href", "action", "srcset", "data")]


def test_the_page_is_one_modest_file_that_asks_for_nothing(s12: Run) -> None:
    text = as_page(Explorer(world_of(RETRY)), [s12])
    parsed = _Addresses(text)
    assert len(text.encode()) < LARGEST
    assert parsed.found == []
    assert not {"link", "img", "iframe", "object", "base"} & set(parsed.elements)
    assert parsed.elements.count("script") == 2
    assert "default-src 'none'" in text


def test_a_title_cannot_end_the_data_that_it_stands_in() -> None:
    hostile = Run('</script><script>alert("i")</script>\u2028', "12345678")
    text = as_page(Explorer(WORLD), [hostile])
    assert _Addresses(text).elements.count("script") == 2
    assert "<script>alert" not in text
    assert "\u2028" not in text


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_loaded_nothing_is_complained_of_and_all_fits(page: Path, width: int, dark: bool) -> None:
    with Browser(page, width, 800, dark) as tab:
        for key in ("End", "ArrowLeft", "t", "Escape", "?"):
            tab.press(key)
            assert tab.value("document.documentElement.scrollWidth") <= width
        assert tab.complaints() == []
        assert [url.partition("#")[0] for url in tab.requested()] == [page.resolve().as_uri()]
        paper = [
            int(n) for n in re.findall(r"\d+", tab.value("getComputedStyle(document.body).backgroundColor"))
        ]
        assert max(paper) < 60 if dark else min(paper) > 200


@pytest.mark.browser
def test_numbers_and_arrows_take_steps_and_take_them_back(page: Path) -> None:
    with Browser(page, 1280, 800) as tab:
        assert tab.value(PLACE) == "step 0 of 7"
        tab.press("ArrowRight")
        assert tab.value(PLACE) == "step 1 of 7"
        assert tab.value("document.activeElement.classList.contains('follows')")
        choices = tab.value(CHOICES)
        tab.press(str(choices.index("cancel i1") + 1))
        assert tab.value(PLACE) == "step 2"
        assert "cancelled" in tab.value(
            "document.querySelector('#standing').textContent"
        ) or "deleted" in tab.value("document.querySelector('#standing').textContent")
        tab.press("Backspace")
        assert tab.value(PLACE) == "step 1 of 2"
        assert tab.value(CHOICES) == choices
        tab.press("ArrowDown")
        tab.press("ArrowDown")
        focused = "[...document.querySelectorAll('#next .choice')].indexOf(document.activeElement)"
        place = tab.value(focused)
        tab.press("ArrowUp")
        assert tab.value(focused) == place - 1
        tab.press("Home")
        assert tab.value(PLACE) == "step 0 of 2"
        assert tab.complaints() == []


@pytest.mark.browser
def test_where_a_longer_number_could_follow_enter_takes_the_choice(page: Path) -> None:
    with Browser(page, 1280, 800) as tab:
        for _ in range(6):
            tab.press("ArrowRight")
        assert len(tab.value(CHOICES)) >= 10
        tab.press("1")
        assert tab.value(PLACE) == "step 6 of 7"
        assert tab.value("document.activeElement.querySelector('kbd').textContent") == "1"
        tab.press("0")
        assert tab.value(PLACE) == "step 7"
        assert tab.value("document.querySelector('#broken').hidden")


@pytest.mark.browser
def test_the_step_that_breaks_a_promise_is_marked_before_and_after(page: Path) -> None:
    with Browser(page, 1280, 800) as tab:
        for key in ("End", "ArrowLeft"):
            tab.press(key)
        assert "✗ breaks S12" in tab.value("document.querySelector('#next .follows').textContent")
        assert tab.value("document.querySelector('#promises .fault').textContent") == "! S12"
        assert tab.value("document.querySelector('#broken').hidden")
        tab.press("ArrowRight")
        assert tab.value("document.querySelector('#broken').textContent").startswith(
            "✗ S12 is broken at step 7"
        )
        assert tab.value("document.querySelector('#promises .wrong').textContent") == "✗ S12"
        assert tab.value("document.querySelector('#walk tr.wrong.chosen .mark').textContent").endswith(
            "breaks S12"
        )
        assert tab.value("[...document.querySelectorAll('.lit')].map(e => e.dataset.life)") == ["ACKED"]


@pytest.mark.browser
def test_the_nearest_way_to_break_a_promise_can_be_followed(page: Path) -> None:
    with Browser(page, 1280, 800) as tab:
        tab.value("page.go(3)")
        tab.value("page.show('S13')")
        tab.value("document.querySelector('#promise button').click()")
        steps = int(tab.value(PLACE).removeprefix("step 3 of "))
        assert f"S13 can be broken in {steps - 3} steps" in tab.value(
            "document.querySelector('#note').textContent"
        )
        tab.press("End")
        assert tab.value("document.querySelector('#broken').textContent").startswith(
            f"✗ S13 is broken at step {steps}"
        )
        assert tab.complaints() == []


@pytest.mark.browser
def test_a_link_leads_back_to_the_place_and_so_does_the_browsers_own_way_back(page: Path, s12: Run) -> None:
    steps = s12.position.split("/")
    with Browser(page, 1280, 800) as tab:
        for _ in range(3):
            tab.press("ArrowRight")
        assert tab.value("location.hash") == "#" + "/".join(steps[:4])
        tab.value("history.back()")
        tab.wait_for(f"{PLACE} === 'step 2 of 7'")
        assert tab.value("location.hash") == "#" + "/".join(steps[:3])
        tab.value(f"void (location.hash = '#{'/'.join(steps[:6])}')")
        tab.wait_for(f"{PLACE} === 'step 5 of 7'")
        tab.value(f"void (location.hash = '#{'/'.join(['00000000', *steps[1:3]])}')")
        tab.wait_for("!document.querySelector('#note').hidden")
        assert "of another revision of the protocol" in tab.value(
            "document.querySelector('#note').textContent"
        )
        assert tab.value(PLACE) == "step 2"


@pytest.mark.browser
def test_a_walk_is_opened_from_a_file_and_what_is_none_is_refused(page: Path, s12: Run) -> None:
    with Browser(page, 1280, 800) as tab:
        tab.value("page.load({title: 'x', position: '12345678', note: ''})")
        for name, text in (
            ("walk.json", f'{{"walks": [{{"position": "{s12.position}"}}]}}'),
            ("run.jsonl", "{}\n{}"),
            ("none.json", '{"walks": []}'),
        ):
            tab.value(f"void page.read(new File([{text!r}], '{name}'))")
            tab.wait_for(f"document.querySelector('#note').textContent.startsWith('{name}')")
            assert tab.value(PLACE) == "step 0 of 7"
        assert "is no walk" in tab.value("document.querySelector('#note').textContent")


@pytest.mark.browser
def test_the_text_of_a_place_can_be_had_and_everything_has_a_name(page: Path, s12: Run) -> None:
    with Browser(page, 1280, 800) as tab:
        for key in ("End", "t"):
            tab.press(key)
        text = tab.value("document.querySelector('#summary').value")
        assert "✗ breaks S12" in text
        assert f"position: {s12.position}\n" in text
        assert f"#{s12.position}\n" in text
        assert tab.value("document.activeElement.id") == "summary"
        unnamed = "[...document.querySelectorAll('button, input, dialog, textarea, svg')].filter(e => !(e.ariaLabel || "
        unnamed += "e.title || e.textContent.trim())).map(e => e.outerHTML)"
        assert tab.value(unnamed) == []


@pytest.mark.browser
def test_what_there_is_to_say_of_a_run_stands_until_the_run_is_left(tmp_path: Path, s12: Run) -> None:
    path = tmp_path / "noted.html"
    path.write_text(as_page(Explorer(WORLD), [evolve(s12, note="Of this run, something.")]), encoding="utf-8")
    note = "document.querySelector('#note').textContent"
    with Browser(path, 1280, 800) as tab:
        assert tab.value(note).endswith("leave it where you like.Of this run, something.")
        tab.press("End")
        assert tab.value(note) == "Of this run, something."
        assert "\nOf this run, something.\n" in tab.value("summary(page.walk)")
        for key in ("1", "Enter", "ArrowLeft", "ArrowLeft"):
            tab.press(key)
        assert tab.value(PLACE) == "step 6 of 8"
        assert tab.value(note) == "Of this run, something."
        tab.value("location.reload()")
        tab.wait_for(f"document.querySelector('#note') && {PLACE} === 'step 6 of 7'")
        assert tab.value(note) == "Of this run, something."
        tab.press("ArrowLeft")
        tab.value("page.take(page.moves.at(-1))")
        assert tab.value(PLACE) == "step 6"
        assert tab.value("document.querySelector('#note').hidden")


@pytest.mark.browser
def test_an_address_that_is_none_is_told_in_a_line_and_the_page_is_at_its_start(page: Path) -> None:
    with Browser(page, 1280, 800) as tab:
        tab.value("void (location.hash = '#%E0%A4%A')")
        tab.value("location.reload()")
        tab.wait_for("document.readyState === 'complete' && location.hash === '#%E0%A4%A'")
        tab.wait_for(
            "document.querySelector('#note').textContent.startsWith('“%E0%A4%A” is no position of a walk.')"
        )
        assert tab.value(PLACE) == "step 0 of 7"
        assert tab.complaints() == []


@pytest.mark.browser
def test_every_word_beside_a_worker_or_an_item_is_explained(page: Path) -> None:
    with Browser(page, 390, 844) as tab:
        tab.press("End")
        words = tab.value("[...document.querySelectorAll('#standing .legend > *')].map(e => e.textContent)")
        meanings = dict(zip(words[::2], words[1::2], strict=True))
        assert meanings == {v.name: v.meaning for v in (ran, excused)}
        assert tab.value("document.querySelector('#standing').textContent").count(excused.name) == 2


@pytest.mark.browser
def test_no_arrow_of_the_drawing_runs_through_a_word(page: Path) -> None:
    crossed = """[...document.querySelectorAll('#lives .cause')].filter(word => {
        const {x, y, width, height} = word.getBBox();
        return [...document.querySelectorAll('#lives path')].some(line =>
            Array.from({length: Math.ceil(line.getTotalLength())}, (_, at) => line.getPointAtLength(at))
                .some(p => x < p.x && p.x < x + width && y + 2 < p.y && p.y < y + height - 2));
    }).map(word => word.textContent)"""
    with Browser(page, 1280, 800) as tab:
        tab.press("End")
        assert tab.value("document.querySelectorAll('#lives .cause').length") >= 10
        assert tab.value(crossed) == []


@pytest.mark.browser
def test_what_is_read_aloud_of_a_step_is_whole_sentences(page: Path) -> None:
    with Browser(page, 1280, 800) as tab:
        for _ in range(5):
            tab.press("ArrowRight")
            assert re.fullmatch(
                r"Step \d: [^.;]+(; [^.;]+)*\. \d+ steps can be next\.",
                tab.value("document.querySelector('#said').textContent"),
            )
