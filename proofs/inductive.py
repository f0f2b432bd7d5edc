"""Induction: what holds at first and is kept by every step holds always.

A **claim** is a lemma or a part of a promise. One about states must hold in the initial state and be kept
by every action; one about steps must hold of every step of its kind. Every question supposes all claims
about states that are still standing. A claim that fails stops being supposed, and what had used it is
asked again, so what is left standing in the end is inductive, whatever the lemmas were.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field, frozen

from peeklock.proofs.counterexample import Counterexample, counterexample
from peeklock.proofs.encode import Answered, Asker, Encoder, Model, Outcome
from peeklock.proofs.quantifiers import Named, Untreatable, Witnesses, instantiated, witnessed
from peeklock.spec.compose import resolved, specialized
from peeklock.spec.law.policy import rule
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import (
    FALSE,
    TRUE,
    Term,
    Variable,
    after,
    arguments,
    constant,
    negate,
    rebuild,
    substitute,
)
from peeklock.spec.promises.promise import Part
from peeklock.spec.variants.variant import Variant

MAX_ATTEMPTS: Term = rule.max_attempts
"""The one setting that stays open: a proof is for any value of it, 1 or more."""

LIMIT = 20_000_000
"""Z3's resource limit for one question; one that takes more counts as not proved."""


@frozen(slots=False)
class AnyMaximum(Variant):
    """A variant of the protocol for any ``max_attempts``."""

    @property
    def settings(self) -> dict[Term, int | bool | enum.Enum]:
        """The values of all settings but that one."""
        return {t: v for t, v in super().settings.items() if t is not MAX_ATTEMPTS}


@frozen(eq=False)
class Claim:
    """A lemma or a part of a promise, in the words of one variant."""

    name: str
    text: str
    part: Part
    promise: str | None = None
    """The promise that it is a part of; None for a lemma."""


@frozen(eq=False)
class Question:
    """Is there a state from which this step breaks the claim? (Without an action: does the initial state?)"""

    action: Action | None
    names: tuple[Term, ...]
    facts: tuple[Term, ...]
    goal: Term
    """What must hold; a term about the state before the step."""
    trouble: str = ""
    """Why it cannot be asked."""


@define(eq=False)
class Finding:
    """What is known of one claim."""

    claim: Claim
    answers: list[tuple[Question, Answered]] = field(factory=list)
    kept: int = 0
    """Steps that keep the claim without a question: they write nothing that it reads, or say it outright."""
    seconds: float = 0.0
    broken_by: list[str] = field(factory=list)
    counterexample: Counterexample | None = None
    doubts: list[str] = field(factory=list)
    """Why some of its questions are open."""

    @property
    def holds(self) -> bool:
        """Nothing breaks it and no question is open."""
        return not self.broken_by and not self.doubts

    @property
    def used(self) -> frozenset[str]:
        """The claims that the answers rest on."""
        return frozenset().union(*(a.used for _, a in self.answers))


class Induction:
    """All claims about one variant of the protocol, and what is found about them."""

    def __init__(
        self, variant: AnyMaximum, actions: Iterable[Action], claims: Sequence[Claim], limit: int = LIMIT
    ) -> None:
        self.variant = variant
        self.limit = limit
        self.actions = specialized(actions, variant.settings)
        self.claims = {c.name: c for c in claims}
        self.states: dict[str, Term] = {
            c.name: substitute(c.part.state, variant.settings) for c in claims if c.part.state is not None
        }
        self.standing = set(self.states)
        self.findings: dict[str, Finding] = {}
        self._unsupposed: set[str] = set()
        self._encoder = Encoder()
        self._askers: dict[tuple[Term, ...], Asker] = {}
        self._reads = {name: _variables(term) for name, term in self.states.items()}

    def settle(self, names: Iterable[str]) -> None:
        """Find out about these claims, and about every claim that they rest on."""
        pending = list(names)
        while pending:
            name = pending.pop(0)
            if name in self.findings:
                continue
            finding = self.findings[name] = Finding(self.claims[name])
            self._ask_all(finding, self._questions(finding))
            fallen = [] if finding.holds or name not in self.standing else [name]
            while fallen:
                fallen.extend(self._fall(fallen.pop()))
            pending += sorted(self._unsettled())

    def needs(self, name: str) -> Iterator[str]:
        """The claims that no longer follow when this one, which stands, is not supposed."""
        self.standing.discard(name)
        try:
            for finding in self.findings.values():
                again = (q for q, a in finding.answers if name in a.used)
                if finding.claim.name != name and any(
                    self._answer(q).outcome is not Outcome.IMPOSSIBLE for q in again
                ):
                    yield finding.claim.name
        finally:
            self.standing.add(name)

    def _unsettled(self) -> set[str]:
        used = set().union(*(f.used for f in self.findings.values()))
        return used - self.findings.keys()

    def _fall(self, name: str) -> Iterator[str]:
        """Suppose the claim no longer; gives the claims that fall with it."""
        self.standing.discard(name)
        for finding in tuple(self.findings.values()):
            again = [q for q, a in finding.answers if name in a.used]
            if again and finding.claim.name != name:
                finding.answers = [(q, a) for q, a in finding.answers if name not in a.used]
                self._ask_all(finding, again)
                if not finding.holds and finding.claim.name in self.standing:
                    self.standing.discard(finding.claim.name)
                    yield finding.claim.name

    def _ask_all(self, finding: Finding, questions: Iterable[Question]) -> None:
        began = time.perf_counter()
        for question in questions:
            answer = self._answer(question)
            finding.answers.append((question, answer))
            where = question.action.name if question.action else "the initial state"
            if answer.outcome is Outcome.UNDECIDED:
                finding.doubts.append(f"{where}: {answer.reason}")
            elif answer.model is not None:
                self._refute(finding, question, where, answer.model)
        finding.seconds += time.perf_counter() - began

    def _refute(self, finding: Finding, question: Question, where: str, model: Model) -> None:
        try:
            found = counterexample(
                model,
                named=Named.of(question.names),
                action=question.action,
                supposed={name: self.states[name] for name in self.standing - self._unsupposed},
                broken=finding.claim.text,
                goal=self.states.get(finding.claim.name, question.goal),
                is_state=finding.claim.part.state is not None,
            )
        except (ValueError, AssertionError, TypeError, LookupError) as error:
            finding.doubts.append(f"{where}: the state that Z3 found cannot be read: {error}")
            return
        if found.disagreement:
            finding.doubts.append(f"{where}: the state that Z3 found does not replay: {found.disagreement}")
            return
        finding.broken_by.append(where)
        finding.counterexample = finding.counterexample or found

    # Questions

    def _questions(self, finding: Finding) -> Iterator[Question]:
        claim = finding.claim
        state = self.states.get(claim.name)
        if state is not None:
            yield self._question(None, (), _initially(state))
        for action in self.actions:
            try:
                goal = self._goal(claim, state, action)
            except (AssertionError, TypeError, ValueError) as error:
                yield Question(
                    action, (), (), TRUE, trouble=f"the claim cannot be made of this step: {error}"
                )
                continue
            if goal is TRUE:
                finding.kept += 1
            elif goal is not None:
                yield self._question(action, action.guards, goal)

    def _goal(self, claim: Claim, state: Term | None, action: Action) -> Term | None:
        if state is None:
            return self.variant.obligation(claim.part, action)
        if self._reads[claim.name].isdisjoint(a.variable for a in action.effects):
            return TRUE
        return resolved(after(state), action.effects)

    def _question(self, action: Action | None, guards: tuple[Term, ...], goal: Term) -> Question:
        witnesses = Witnesses("some")
        try:
            facts = tuple(witnessed(f, witnesses) for f in (*guards, negate(goal)))
            names = (*(action.params if action else ()), *witnesses.found)
            named = Named.of(names)
            return Question(action, names, tuple(instantiated(f, named) for f in facts), goal)
        except Untreatable as error:
            return Question(action, (), (), goal, trouble=str(error))

    def possible(self, action: Action) -> Outcome:
        """Can the action happen in a state that the claims allow which were found to stand?"""
        question = self._question(action, action.guards, FALSE)
        return self._answer(question, self.standing & self.findings.keys()).outcome

    def _answer(self, question: Question, supposed: Iterable[str] | None = None) -> Answered:
        if question.trouble:
            return Answered(Outcome.UNDECIDED, reason=question.trouble)
        if supposed is None:
            supposed = self.standing if question.action else ()
        asker = self._asker(question.names)
        asker.open()
        try:
            for fact in question.facts:
                asker.given(fact)
            return asker.ask(supposed)
        except Untreatable as error:
            return Answered(Outcome.UNDECIDED, reason=str(error))
        finally:
            asker.close()

    def _asker(self, names: tuple[Term, ...]) -> Asker:
        asker = self._askers.get(names)
        if asker is None:
            asker = self._askers[names] = Asker(self._encoder, names, self.limit)
            asker.given(MAX_ATTEMPTS >= 1)
            named = Named.of(names)
            for name, state in self.states.items():
                try:
                    asker.suppose(name, instantiated(state, named))
                except Untreatable:
                    self._unsupposed.add(name)  # what needs it is not proved
        return asker


def _initially(state: Term) -> Term:
    def first(term: Term) -> Term | None:
        variable = term.args[0] if term.op == "read" else None
        return constant(variable.initial, variable.sort) if isinstance(variable, Variable) else None

    return rebuild(state, first)


def _variables(term: Term) -> frozenset[Variable]:
    found = {a for a in term.args if isinstance(a, Variable)}
    return frozenset(found).union(*map(_variables, arguments(term)))
