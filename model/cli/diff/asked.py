"""What a comparison is asked about: a policy, a policy file, or either of them at a git revision."""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from peeklock.cli.shared.errors import UsageError, chosen_names
from peeklock.cli.shared.options import limits_of, world_of
from peeklock.cli.shared.progress import Progress
from peeklock.model.review.revisions import NoRepositoryError, Revised, Revision, RevisionError, policies_at
from peeklock.model.review.sides import Present, Side
from peeklock.spec.law.faults import KNOWN_FAULTS
from peeklock.spec.law.policy import POLICIES, PolicyError
from peeklock.spec.variants.policy_file import find_variant, read_variant
from peeklock.spec.variants.variant import Variant

FORMS = f"{', '.join(POLICIES)}, a file that ends in .toml, or a git revision: REV, REV:NAME, REV:FILE.toml"


@frozen
class Asked:
    """One side, as it was typed."""

    text: str
    title: str
    variant: Variant | None = None
    """Where the protocol is the present one."""
    revision: Revision | None = None
    """The revision that it is of. Where there is no variant the protocol is that revision's, too."""
    name: str = ""
    """Which policy of that revision's protocol; empty where only the revision was typed."""
    file: str | None = None
    """The text of a policy file of that revision."""

    @property
    def heading(self) -> str:
        """The title with the commit that it stands for."""
        if self.revision is None or self.revision.commit.startswith(self.revision.name):
            return self.title
        return f"{self.title} ({self.revision.commit[:9]})"

    @property
    def is_bare(self) -> bool:
        """Was a revision typed, and no policy?"""
        return self.variant is None and not self.name

    def of(self, policy: str) -> Asked:
        """What a bare revision means for one of its policies."""
        return evolve(self, text=f"{self.text}:{policy}", title=f"{self.title}:{policy}", name=policy)

    def policies(self) -> tuple[str, ...]:
        """The policies that a bare revision has; ``UsageError`` when they cannot be asked for."""
        assert self.revision is not None
        try:
            return policies_at(self.revision)
        except RevisionError as error:
            raise UsageError(str(error)) from None

    def side(self, title: str, options: argparse.Namespace, open_until: ExitStack) -> Side:
        """Search it; ``UsageError`` when it cannot be. What it needs stays open as long as the stack."""
        if self.variant is not None:
            world = world_of(options, self.variant)
            with Progress(f"{title}, {world}") as progress:
                return Present(title, self.variant.policy, world, limits_of(options), progress.report)
        assert self.revision is not None
        try:
            revised = Revised(title, self.revision, self.name, self.file, _sizes(options))
        except RevisionError as error:
            raise UsageError(str(error)) from None
        return open_until.enter_context(revised)


def asked(text: str) -> Asked:
    """What is meant by it; ``UsageError`` when it can be nothing."""
    try:
        if text in POLICIES or (text.endswith(".toml") and (":" not in text or Path(text).exists())):
            variant = find_variant(text)
            return Asked(text, variant.policy.name, variant)
        name, colon, rest = text.partition(":")
        if colon and rest not in POLICIES and not rest.endswith(".toml"):
            raise UsageError(f"{text}: no policy {rest!r} at a revision; allowed: {FORMS}")
        return _at(text, Revision.found(name), rest)
    except NoRepositoryError as error:
        raise UsageError(
            f"unknown policy {text!r}, and no git checkout here in which it could be a revision ({error}); "
            f"allowed: {FORMS}"
        ) from None
    except (PolicyError, RevisionError) as error:
        if ":" not in text and not text.endswith(".toml"):
            raise UsageError(f"unknown policy or revision {text!r}; allowed: {FORMS}") from None
        raise UsageError(str(error)) from None


def _at(text: str, revision: Revision, name: str) -> Asked:
    """A policy at a revision. Where the revision has no specification, a file of it is read by the present one."""
    file = revision.file(name) if name.endswith(".toml") else None
    if revision.has_protocol or file is None:
        return Asked(text, text, None, revision, name, file)
    with tempfile.TemporaryDirectory(prefix="peeklock-diff-") as folder:
        path = Path(folder) / Path(name).name
        path.write_text(file, encoding="utf-8")
        try:
            variant = read_variant(path)
            variant = evolve(variant, policy=evolve(variant.policy, source=text))
        except PolicyError as error:
            raise UsageError(str(error).replace(str(path), text)) from None
    return Asked(text, text, variant, revision)


def _sizes(options: argparse.Namespace) -> dict[str, Any]:
    """The options that choose a world, for another process. Which fault classes there are is for it to say."""
    known = tuple(f.name for f in KNOWN_FAULTS)

    def names(text: str | None) -> list[str]:
        return [] if text is None else list(chosen_names(text, known, "fault class"))

    limits = limits_of(options)
    return {
        "workers": options.workers,
        "items": options.items,
        "deliveries": options.deliveries,
        "max_attempts": options.max_attempts,
        "only": None if options.only is None else names(options.only),
        "with": names(options.also),
        "without": names(options.without),
        "seconds": limits.seconds,
        "bytes": limits.bytes,
    }
