"""The exports: Spin and TLA+ have the same states, the same steps and the same verdicts as the search."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from attrs import evolve
from spin_runner import EVERYTHING_CHECKED, SpinFailed, run_spin
from tla_reader import Configuration, Module, NotTla, State

from peeklock.cli.main import run
from peeklock.model.export.common import demands_of, in_order, write_whole
from peeklock.model.export.promela import promela
from peeklock.model.export.tla import configuration, tla
from peeklock.model.search.engine import Search
from peeklock.model.search.tables import Watch
from peeklock.model.search.verdicts import check
from peeklock.model.search.world import World
from peeklock.spec.compose import POSSIBILITIES, PROMISES, I
from peeklock.spec.law.policy import POLICIES, Policy
from peeklock.spec.law.state import acked_by, current, issued, token
from peeklock.spec.notation.terms import ITEM, NAT, every, parameter
from peeklock.spec.variants.variant import Variant

pytestmark = pytest.mark.slow

QUICKLY = ("-O0", "-DSAFETY", "-DNOREDUCE")
"""These worlds are so small that compiling takes longer than the search."""
DEMANDS = demands_of(PROMISES, POSSIBILITIES)


def world(policy: str | Policy, workers: int, items: int, deliveries: int, **changes: object) -> World:
    chosen = POLICIES[policy] if isinstance(policy, str) else policy
    variant = Variant(evolve(chosen, max_attempts=2))
    return World(evolve(variant, **changes), workers, items, deliveries)  # type: ignore[arg-type]


@cache
def found_by_search(world: World) -> tuple[int, int, frozenset[str]]:
    """Distinct states, steps, and the parts that are broken and possibilities that are found, nothing left out."""
    search = Search(
        world, tuple(Watch(d.part, wanted=d.sought) for d in DEMANDS), symmetric=False, clearing=False
    )
    statistics = search.run()
    return statistics.distinct, statistics.generated, frozenset(DEMANDS[bit].name for bit in search.found)


UNCOUNTED = evolve(POLICIES["hardened"], name="*/ *) \n", abandon_ignores_attempt=True)
"""Under a name that must not end a comment."""
SMALL = {
    "before": world("before", 2, 1, 4),
    "retry": world("retry", 2, 1, 4),
    "hardened": world("hardened", 2, 1, 4),
    "two items": world("retry", 1, 2, 2),
    "in order": world("retry", 1, 2, 2, fifo=True),
    "no faults": world("hardened", 2, 2, 2, faults=frozenset()),
    "some faults": world(
        "before", 2, 2, 1, faults=frozenset({"ack-retryable", "response-lost", "renewal-retryable", "crash"})
    ),
    "given back uncounted": world(UNCOUNTED, 1, 1, 3),
    "a store that lies": world("retry", 3, 1, 2, faults=frozenset({"dishonest-permanent", "ack-permanent"})),
}


# Spin


@pytest.mark.spin
@pytest.mark.parametrize("small", SMALL.values(), ids=SMALL)
def test_spin_has_the_same_states_steps_and_verdicts(small: World) -> None:
    """Every assertion is checked, part by part; looking adds a step to each state, and no state."""
    states, steps, found = found_by_search(small)
    spin = run_spin(small, spin=EVERYTHING_CHECKED, gcc=QUICKLY)
    assert (spin.stored, spin.transitions) == (states, states + steps + 1)
    assert spin.violated == found


def test_the_small_worlds_show_every_promise_that_is_stated_to_fail_broken_and_no_other() -> None:
    """So the comparison with Spin is one between different verdicts."""
    for policy in POLICIES:
        broken = {name.split("_")[0] for name in found_by_search(SMALL[policy])[2] if "_" in name}
        assert broken == {p.id for p in PROMISES if policy in p.broken_by}


@pytest.mark.spin
def test_spin_counts_the_steps_when_nothing_is_checked() -> None:
    states, steps, _ = found_by_search(SMALL["retry"])
    spin = run_spin(SMALL["retry"], gcc=QUICKLY)
    assert (spin.stored, spin.transitions, spin.errors) == (states, steps + 1, 0)


@pytest.mark.spin
def test_spin_can_check_one_promise_of_the_file() -> None:
    for promise, violated in (("S13", {"S13_1"}), ("S12", {"S12_1"}), ("S1", set())):
        spin = run_spin(SMALL["retry"], spin=("-DONLY", f"-D{promise}"), gcc=QUICKLY)
        assert spin.violated == violated


@pytest.mark.spin
@pytest.mark.parametrize("promise", ["S12", "S13", "S14"])
def test_a_shortest_run_of_spin_is_as_long_as_that_of_the_search(promise: str) -> None:
    """Breadth first: an assertion about a step is violated in the state before it."""
    result = check(SMALL["retry"], tuple(p for p in PROMISES if p.id == promise), (), with_causes=False)
    first = ("-DONLY", f"-D{promise}", "-DBFS")
    spin = run_spin(SMALL["retry"], spin=first, gcc=(*QUICKLY, "-DBFS"), pan=())
    assert spin.first_violation == result.promises[0].broken[0].level


def test_a_file_can_be_of_some_promises_only() -> None:
    text = promela(SMALL["retry"], tuple(p for p in PROMISES if p.id in ("S12", "C3")), ())
    assert set(re.findall(r"^NAME\((\w+)\)", text, re.M)) == {"S12_1", "C3_1", "C3_2", "C3_3"}


def test_spin_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SpinFailed, match="spin is not installed; it is needed here: apt-get install spin"):
        run_spin(SMALL["retry"])


@pytest.mark.spin
def test_a_run_of_spin_that_is_cut_short_is_no_result() -> None:
    with pytest.raises(SpinFailed, match="not complete: max search depth too small"):
        run_spin(SMALL["two items"], gcc=QUICKLY, pan=("-m8",))


def test_what_is_assigned_at_once_is_written_in_an_order_that_does_the_same() -> None:
    w = parameter("w", token.index)
    swap = [current[I].becomes(issued[I]), issued[I].becomes(current[I])]
    ordered = in_order([issued[I].becomes(issued[I] + 1), token[w].becomes(issued[I] + 1)])
    assert [e.variable for e in ordered] == [token, issued]
    with pytest.raises(ValueError, match="old values"):
        in_order(swap)


def test_what_is_taken_away_from_nothing_is_nothing() -> None:
    """No state of these worlds takes 1 from 0, so this is looked up in the text."""
    small = SMALL["given back uncounted"]
    assert "(attempt_count[i] > 1 -> attempt_count[i] - 1 : 0)" in promela(small)
    assert "(IF attempt_count[i] > 1 THEN attempt_count[i] - 1 ELSE 0)" in tla(small)


# TLA+


@cache
def walked(small: World) -> tuple[Module, Configuration, frozenset[State], int]:
    """A module's reachable states and steps, by its own text."""
    settings = Configuration(configuration(small))
    module = Module(tla(small), settings.constants)
    seen, todo, steps = {module.initial()}, [module.initial()], 0
    while todo:
        for after in module.successors(todo.pop()):
            steps += 1
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return module, settings, frozenset(seen), steps


FEW = {
    "before": world("before", 1, 1, 4),
    "retry": world(
        "retry", 2, 1, 1, faults=frozenset({"ack-retryable", "response-lost", "renewal-retryable"})
    ),
    "hardened": world("hardened", 1, 1, 3),
    "given back uncounted": world(UNCOUNTED, 1, 1, 2),
    "in order": world("retry", 1, 2, 1, fifo=True, faults=frozenset({"expiry"})),
}


@pytest.mark.parametrize("few", FEW.values(), ids=FEW)
def test_the_tla_module_has_the_same_states_steps_and_verdicts(few: World) -> None:
    """Read by the grammar of tree-sitter and evaluated as it stands, with the configuration's constants."""
    module, settings, states, steps = walked(few)
    distinct, generated, found = found_by_search(few)
    assert (len(states), steps) == (distinct, generated)
    assert settings.invariants == ["TypeOK", *(d.name for d in DEMANDS if not d.sought)]
    assert settings.denied == [f"Never_{d.name}" for d in DEMANDS if d.sought]
    names = (*settings.invariants, *settings.denied)
    broken = {n.removeprefix("Never_") for n in names if not all(module.holds(n, s) for s in states)}
    assert broken == found


@pytest.mark.parametrize("policy", POLICIES)
def test_the_grammar_accepts_a_module_of_any_policy(policy: str) -> None:
    large = world(policy, 3, 3, 9, faults=frozenset({"cancel", "dishonest-permanent"}))
    Module(tla(large), Configuration(configuration(large)).constants)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("(row[i] = ", "(rows[i] = ", "rows is not defined"),
        ("UNCHANGED <<row, ", "UNCHANGED <<", "nothing is said of {'row'}"),
        ("UNCHANGED <<row, ", "UNCHANGED <<row, row, ", "said twice"),
        ("/\\ (row[i] = ", "/\\ ((row[i] = ", "the grammar does not accept it"),
        ('= "ABSENT"', "= 0", "cannot be compared"),
        ("Init ==", "Row ==", "Row is defined twice"),
        ("    NoItem,  ", "    NoItem, Nothing,  ", "constants declared"),
    ],
)
def test_the_reader_of_tla_is_strict(old: str, new: str, complaint: str) -> None:
    text = tla(FEW["before"])
    assert old in text
    _, settings, states, _ = walked(FEW["before"])

    def read_and_walk() -> None:
        module = Module(text.replace(old, new), settings.constants)
        for state in states:
            module.successors(state)

    with pytest.raises(NotTla, match=complaint):
        read_and_walk()


def test_quantifiers_inside_each_other_have_names_of_their_own() -> None:
    text = tla(world("retry", 2, 2, 1))
    two_workers = re.search(r"^S6_1 == (.*)$", text, re.M)
    assert two_workers is not None
    assert re.findall(r"\\A (\w+)", two_workers.group(1)) == ["j", "v1", "v"]


# The command

WORLD = ["--workers", "1", "--items", "1", "--deliveries", "2"]


def test_promela_goes_to_standard_output_or_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = world("before", 1, 1, 2)
    assert run(["export", "promela", "--policy", "before", *WORLD]) == 0
    assert capsys.readouterr().out == promela(small)
    assert run(["export", "promela", "--policy", "before", *WORLD, "-o", str(tmp_path / "a.pml")]) == 0
    assert (tmp_path / "a.pml").read_text() == promela(small)
    assert capsys.readouterr().out == f"wrote {tmp_path / 'a.pml'}\n"


def test_tla_is_a_module_and_its_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = world("retry", 1, 1, 2)
    assert run(["export", "tla", *WORLD]) == 0
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
        "Peeklock.tla": tla(small),
        "Peeklock.cfg": configuration(small),
    }


def test_an_export_of_one_promise(tmp_path: Path) -> None:
    assert run(["export", "tla", *WORLD, "--promise", "S12", "-o", str(tmp_path)]) == 0
    settings = Configuration((tmp_path / "Peeklock.cfg").read_text())
    assert (settings.invariants, settings.denied) == (["TypeOK", "S12_1"], [])


def test_two_exports_of_the_same_world_are_the_same_text() -> None:
    """Whatever else the specification was used for in between."""
    texts = []
    for _ in range(2):
        every(ITEM, lambda i: acked_by[i] == parameter("t", NAT))
        texts.append((promela(SMALL["retry"]), tla(SMALL["retry"])))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["export"], "LANGUAGE"),
        (["export", "alloy"], "unknown language 'alloy'; allowed: promela, tla"),
        (["export", "tla", "--promise", "S99"], "unknown promise 'S99'; allowed: S1, "),
        (["export", "tla", "--workers", "0"], "workers is 0; allowed in a bounded world: 1 to 250"),
        (["export", "tla", "--policy", "none"], "none"),
        (["export", "tla", "--limit-mib", "5"], "an export does not search"),
        (["export", "promela", "-o", "/nowhere/a.pml"], "cannot write /nowhere/a.pml: No such file"),
        (["export", "promela", "-o", "/"], "cannot write /: Is a directory"),
        (["export", "tla", "-o", "/dev/null"], "cannot write /dev/null/Peeklock.tla"),
    ],
)
def test_bad_input_is_said_in_one_line(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert complaint in said.err
    assert said.err.count("\n") == 1


def test_a_file_that_cannot_be_written_leaves_everything_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Peeklock.tla").write_text("old")
    (tmp_path / "Peeklock.cfg").mkdir()
    assert run(["export", "tla", *WORLD, "-o", str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err
    assert (tmp_path / "Peeklock.tla").read_text() == "old"
    assert {p.name for p in tmp_path.iterdir()} == {"Peeklock.tla", "Peeklock.cfg"}


def test_a_disk_that_is_full_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_whole({tmp_path / "a": "new"})
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "old"}


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    old, new, plain = tmp_path / "old", tmp_path / "new", tmp_path / "plain"
    old.write_text("old")
    old.chmod(0o600)
    plain.write_text("")
    write_whole({old: "more", new: "text"})
    assert old.stat().st_mode & 0o777 == 0o600
    assert new.stat().st_mode == plain.stat().st_mode


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write_whole({tmp_path / "link": "new"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE, text=True)
    write_whole({tmp_path / "pipe": "through"})
    assert reader.communicate(timeout=10)[0] == "through"
    assert (tmp_path / "pipe").is_fifo()
