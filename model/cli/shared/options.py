"""The options that several commands share: which policy, which faults, how large a world."""

from __future__ import annotations

import argparse
import os

from attrs import evolve

from peeklock.cli.shared.errors import UsageError, chosen_names
from peeklock.model.search.engine import Limits
from peeklock.model.search.world import World, WorldError
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.faults import FAULTS, KNOWN_FAULTS
from peeklock.spec.law.policy import POLICIES, Policy, PolicyError
from peeklock.spec.promises.promise import Promise
from peeklock.spec.variants.deviations import NO_DEVIATIONS
from peeklock.spec.variants.policy_file import find_variant
from peeklock.spec.variants.variant import Variant


def add_world_options(parser: argparse.ArgumentParser) -> None:
    """The options that choose a world."""
    group = parser.add_argument_group("the world")
    group.add_argument("--workers", type=int, default=2, metavar="N", help="how many workers (default 2)")
    group.add_argument("--items", type=int, default=2, metavar="N", help="how many items (default 2)")
    group.add_argument(
        "--deliveries", type=int, metavar="N", help="at most so many per item (default: max_attempts + 2)"
    )
    group.add_argument(
        "--max-attempts",
        type=int,
        metavar="N",
        help="in place of the policy's own (default 2, or what a policy file says)",
    )
    names = ", ".join(f.name for f in KNOWN_FAULTS)
    faults = parser.add_argument_group(
        "the faults", f"Classes: {names}. All but dishonest-permanent are on by default."
    )
    faults.add_argument("--without", metavar="FAULT,…", help="switch these classes off")
    faults.add_argument("--only", metavar="FAULT,…", help="switch all other classes off")
    faults.add_argument("--with", dest="also", metavar="FAULT,…", help="switch these classes on, too")
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--limit-seconds", type=float, metavar="S", help="stop after so many seconds of search"
    )
    limits.add_argument(
        "--limit-mib", type=int, metavar="N", help="stop at so much memory (default: most of what is free)"
    )


def variants_of(names: list[str] | None, any_store: bool = False) -> list[Variant]:
    """The policies that were asked for, each over its store; all three when none was.

    Only where ``any_store`` may a store deviate from the contract.
    """
    try:
        found = [find_variant(n) for n in (names or POLICIES)]
    except PolicyError as error:
        raise UsageError(str(error)) from None
    for variant in found:
        if variant.store != NO_DEVIATIONS and not any_store:
            raise UsageError(
                f"{variant.policy.source}: has a [store] that deviates from the contract; allowed here: the standard "
                "store (check, explain and diff take any)"
            )
    return found


def world_of(options: argparse.Namespace, variant: Variant) -> World:
    """The world that the options describe."""
    known = tuple(f.name for f in KNOWN_FAULTS)
    faults = {f.name for f in FAULTS}
    if options.only is not None:
        faults = set(chosen_names(options.only, known, "fault class"))
    if options.also is not None:
        faults |= set(chosen_names(options.also, known, "fault class"))
    faults |= variant.store.faults
    if options.without is not None:
        faults -= set(chosen_names(options.without, known, "fault class"))
    try:
        maximum = _max_attempts(options, variant.policy)
        policy = evolve(variant.policy, max_attempts=maximum)
        variant = evolve(variant, policy=policy, faults=frozenset(faults))
        # With as many deliveries, an item can be counted as poison twice.
        deliveries = maximum + 2 if options.deliveries is None else options.deliveries
        return World(variant, options.workers, options.items, deliveries)
    except (WorldError, PolicyError) as error:
        raise UsageError(str(error)) from None


def _max_attempts(options: argparse.Namespace, policy: Policy) -> int:
    """A world is small: two attempts stand for many, unless somebody asks for another number."""
    if options.max_attempts is not None:
        return int(options.max_attempts)
    return policy.max_attempts if "max_attempts" in policy.given else 2


def chosen(world: World) -> str:
    """The options that describe a world, as they are typed; what is the default is left out."""
    policy, faults = world.variant.policy, world.variant.faults
    words = [f"--policy {policy.source or policy.name}"]
    usual = {"workers": 2, "items": 2, "deliveries": policy.max_attempts + 2}
    words += [
        f"--{name} {getattr(world, name)}" for name, size in usual.items() if getattr(world, name) != size
    ]
    if policy.max_attempts != 2 and "max_attempts" not in policy.given:
        words.append(f"--max-attempts {policy.max_attempts}")
    off = [f.name for f in FAULTS if f.name not in faults]
    usual_faults = {f.name for f in FAULTS} | world.variant.store.faults
    more = [f.name for f in KNOWN_FAULTS if f.name in faults - usual_faults]
    words += [f"--without {','.join(off)}"] if off else []
    words += [f"--with {','.join(more)}"] if more else []
    return " ".join(words)


def limits_of(options: argparse.Namespace) -> Limits:
    """The limits that the options set; by default four fifths of the memory that is free now."""
    if options.limit_seconds is not None and not options.limit_seconds > 0:
        raise UsageError(f"--limit-seconds is {options.limit_seconds:g}; allowed: more than 0")
    if options.limit_mib is not None and options.limit_mib <= 0:
        raise UsageError(f"--limit-mib is {options.limit_mib}; allowed: 1 or more")
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Limits(
        seconds=options.limit_seconds,
        bytes=options.limit_mib << 20 if options.limit_mib is not None else free * 4 // 5,
    )


def promises_of(text: str | None) -> tuple[Promise, ...]:
    """The promises that were asked for; all when none was."""
    if text is None:
        return PROMISES
    ids = chosen_names(text.upper(), tuple(p.id for p in PROMISES), "promise")
    return tuple(p for p in PROMISES if p.id in ids)
