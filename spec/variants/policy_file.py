"""Policy files: a policy in TOML, and in its table ``[store]`` how the store that it is tried against deviates."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from attrs import evolve, fields_dict

from peeklock.spec.law.faults import FAULTS
from peeklock.spec.law.policy import CHOICES, POLICIES, SWITCHES, Policy, PolicyError
from peeklock.spec.variants.deviations import NO_DEVIATIONS, Deviations, RepeatedAck
from peeklock.spec.variants.variant import Variant


def _value(where: str, name: str, value: Any) -> Any:
    if name in CHOICES:
        allowed = [m.value for m in CHOICES[name]]
        if value not in allowed:
            raise PolicyError(f"{where}: {name} is {value!r}; allowed: {', '.join(allowed)}")
        return CHOICES[name](value)
    if name == "ack_waits_ms":
        if not isinstance(value, list) or not all(type(v) is int for v in value):
            raise PolicyError(f"{where}: {name} is {value!r}; allowed: a list of whole milliseconds")
        return tuple(value)
    if name == "name":
        if not isinstance(value, str) or not re.fullmatch(r"[\w.-]{1,60}", value) or value in POLICIES:
            raise PolicyError(
                f"{where}: name is {value!r}; allowed: a word of its own, of letters, digits, . _ -"
            )
        return value
    if name in SWITCHES:
        if type(value) is not bool:
            raise PolicyError(f"{where}: {name} is {value!r}; allowed: true, false")
        return value
    if type(value) is not int:
        raise PolicyError(f"{where}: {name} is {value!r}; allowed: a whole number")
    return value


def _store(path: Path, table: Any) -> Deviations:
    """The table of a store's deviations."""
    if not isinstance(table, dict):
        raise PolicyError(f"{path}: store is {table!r}; allowed: a table [store]")
    known, values = fields_dict(Deviations), dict[str, Any]()
    for name, value in table.items():
        if name not in known:
            raise PolicyError(f"{path}: unknown field {name!r} in [store]; allowed: {', '.join(known)}")
        if name == "repeated_ack":
            allowed = [m.value for m in RepeatedAck]
            if value not in allowed:
                raise PolicyError(f"{path}: {name} in [store] is {value!r}; allowed: {', '.join(allowed)}")
            values[name] = RepeatedAck(value)
        elif type(value) is not bool:
            raise PolicyError(f"{path}: {name} in [store] is {value!r}; allowed: true, false")
        else:
            values[name] = value
    return Deviations(**values)


def read_variant(path: Path) -> Variant:
    """The policy in a TOML file, over the store of its table ``[store]``; ``PolicyError`` where it is not one."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise PolicyError(f"{path}: not a policy file: {reason}") from error
    base = data.pop("base", "retry")
    if not isinstance(base, str) or base not in POLICIES:
        raise PolicyError(f"{path}: base is {base!r}; allowed: {', '.join(POLICIES)}")
    known = (*(n for n in fields_dict(Policy) if n not in ("stands_for", "source", "given")), "store")
    for name in data:
        if name not in known:
            raise PolicyError(f"{path}: unknown field {name!r}; allowed: base, {', '.join(known)}")
    store = _store(path, data.pop("store")) if "store" in data else NO_DEVIATIONS
    changes = {name: _value(str(path), name, value) for name, value in data.items()}
    named: dict[str, Any] = {"name": path.stem, "source": str(path), "given": tuple(data), **changes}
    return over(evolve(POLICIES[base], **named), store)


def over(policy: Policy, store: Deviations = NO_DEVIATIONS) -> Variant:
    """The policy over a store, under the fault classes that are on by default and those of that store."""
    return Variant(policy, frozenset(f.name for f in FAULTS) | store.faults, store=store)


def find_variant(name_or_path: str) -> Variant:
    """A named policy over the standard store, or what a TOML file describes; ``PolicyError`` for neither."""
    if name_or_path in POLICIES:
        return over(POLICIES[name_or_path])
    if name_or_path.endswith(".toml"):
        return read_variant(Path(name_or_path))
    raise PolicyError(
        f"unknown policy {name_or_path!r}; allowed: {', '.join(POLICIES)}, or a file that ends in .toml"
    )
