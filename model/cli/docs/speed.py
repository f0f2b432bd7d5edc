"""Tables and the plot of what the benchmarks measured, from docs/speed.json and docs/harness-speed.json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peeklock.cli.docs.reference import table
from peeklock.cli.shared.errors import UsageError

MEASURED = Path("docs/speed.json")
HARNESS_MEASURED = Path("docs/harness-speed.json")
PLOT = Path("docs/speed.svg")


def _measured(path: Path = MEASURED, made_by: str = "make bench") -> dict[str, Any]:
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; `{made_by}` writes it") from None
    return data


def where_measured() -> str:
    """When, on what machine and with which versions."""
    data = _measured()
    versions = ", ".join(
        f"{name} {version}".replace("spin Spin", "Spin") for name, version in data["versions"].items()
    )
    return (
        f"Measured on {data['date']}, {data['machine']}; {versions}. Seconds are medians of whole processes, five of "
        "each (three in the largest world)."
    )


def comparison() -> str:
    """The same worlds explored by this engine, by plain evaluation and by Spin."""
    rows = []
    for row in _measured()["comparison"]:
        engine, reduced, plain, spin = row["engine"], row["reduced"], row["plain"], row["spin"]
        rows.append(
            (
                row["world"],
                f"{row['distinct']:,}",
                f"{row['generated']:,}",
                f"{engine['seconds']:.1f} s",
                f"{reduced['seconds']:.1f} s",
                f"{plain['seconds']:.1f} s" if plain else "not run",
                f"{spin['seconds']:.1f} s" + ("" if spin.get("checked", True) else " (nothing checked)"),
                f"{spin['seconds'] / engine['seconds']:.1f}",
                f"{spin['seconds'] / reduced['seconds']:.1f}",
                f"{plain['seconds'] / engine['seconds']:.0f}" if plain else "",
            )
        )
    head = ("world", "states", "steps", "engine", "reduced", "plain", "Spin", "Spin/engine", "Spin/reduced")
    return table((*head, "plain/engine"), rows)


def memory() -> str:
    """Memory and speed on the same worlds."""
    rows = []
    for row in _measured()["comparison"]:
        engine, reduced, spin = row["engine"], row["reduced"], row["spin"]
        rows.append(
            (
                row["world"],
                f"{engine['mebibytes']:,.0f} MiB",
                f"{engine['mebibytes'] * 2**20 / row['distinct']:,.0f}",
                f"{reduced['mebibytes']:,.0f} MiB",
                f"{spin['mebibytes']:,.0f} MiB",
                f"{engine['rate'] / 1e6:.1f} million",
                f"{reduced['distinct']:,}",
            )
        )
    return table(
        ("world", "engine", "bytes a state", "reduced", "Spin", "steps a second", "states, reduced"),
        rows,
    )


def growth() -> str:
    """Time and memory as each size grows."""
    rows = []
    for series, measured in _measured()["growth"].items():
        for row in measured:
            ended = f"stopped at {row['stopped']}" if row["stopped"] else "complete"
            rows.append(
                (
                    series,
                    row["world"].split(" ", 1)[1],
                    f"{row['distinct']:,}",
                    f"{row['seconds']:.1f} s",
                    f"{row['mebibytes']:,.0f} MiB",
                    ended,
                )
            )
    return table(("grows", "workers, items, deliveries", "states", "time", "memory", ""), rows)


def reach() -> str:
    """The largest world that was exhausted within the limits."""
    series = {n: [r for r in rows if not r["stopped"]] for n, rows in _measured()["growth"].items()}
    largest = max((r for rows in series.values() for r in rows), key=lambda r: r["distinct"])
    workers, items, deliveries = largest["world"].split(" ", 1)[1].split(", ")
    factors = [
        f"{name} {rows[-1]['distinct'] / rows[-2]['distinct']:.1f}"
        for name, rows in series.items()
        if len(rows) > 1
    ]
    return (
        f"The largest world exhausted here is one of {workers} workers, {items} items and {deliveries} deliveries: "
        f"{largest['distinct']:,} states (after both reductions) in {largest['seconds']:.0f} s and "
        f"{largest['mebibytes']:,.0f} MiB. By what factor the states grew at the last step of each row above that was "
        f"completed: {'; '.join(factors)}."
    )


def harness() -> str:
    """What checks of stores and judging runs take."""
    data = _measured(HARNESS_MEASURED, "make bench-harness")
    rows = [(row["what"], row["measured"], row["should_be"]) for row in data["rows"]]
    where = (
        f"Measured on {data['date']}, {data['machine']}; python {data['versions']['python']}. "
        "Times are the processor's."
    )
    return f"{table(('what', 'measured', 'should be'), rows)}\n\n{where}"


SPEED = {
    "where measured": where_measured,
    "speed comparison": comparison,
    "memory comparison": memory,
    "growth": growth,
    "reach": reach,
    "harness speed": harness,
}

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 380, 64, 48
_COLOURS = ("#1b6ca8", "#c2571a", "#3d7d3d", "#8a3f8f", "#8a7a1f")


def plot() -> str:
    """Distinct states against time, both logarithmic, one line for each size that grows; as SVG."""
    return "\n".join(_drawn(_measured()["growth"])) + "\n"


def _drawn(series: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    def x(states: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 48) * _log(states, 2, 8)

    def y(seconds: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - 24) * _log(seconds, -1, 2)

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    )
    for power in range(2, 9):
        at, name = x(10**power), f"{10**power:,}"
        yield f'<path d="M{at:.1f} 24V{_HEIGHT - _BOTTOM}" stroke="#dddddd"/>'
        yield f'<text x="{at:.1f}" y="{_HEIGHT - 28}" text-anchor="middle">{name}</text>'
    for power in range(-1, 3):
        at, name = y(10**power), f"{10**power:g} s"
        yield f'<path d="M{_LEFT} {at:.1f}H{_WIDTH - 24}" stroke="#dddddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{name}</text>'
    yield f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">distinct states, reduced</text>'
    for (name, rows), colour, place in zip(series.items(), _COLOURS, range(len(_COLOURS)), strict=False):
        points = [(x(r["distinct"]), y(r["seconds"])) for r in rows if not r["stopped"]]
        line = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        yield f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for a, b in points:
            yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>'
        yield f'<circle cx="{_LEFT + 16}" cy="{40 + 18 * place}" r="4" fill="{colour}"/>'
        yield f'<text x="{_LEFT + 28}" y="{44 + 18 * place}">more {name}</text>'
    yield "</svg>"


def _log(value: float, low: int, high: int) -> float:
    return (math.log10(max(value, 10.0**low)) - low) / (high - low)
