"""The tables of docs/pacml-results.md, each made from the rows of benchmarks/pacml.csv alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gangplan.simulator.metrics.compare import interval
from gangplan.simulator.ramp import DISTRIBUTIONS
from gangplan.simulator.ramp.step import Units

from .cells import table
from .ledger import ROOT
from .pacml_rows import BOUND, LEARNED, PACML, PLAN, PROTOCOL, UNGUARDED, PacmlRow, read
from .pacml_suites import ABLATIONS, CONSTANTS, GROUPS, ROLLOUTS, RULES, SAMPLED, SUITES, Cell
from .report import renew

PAGE = ROOT / "docs" / "pacml-results.md"
PUBLISHED = {
    "PAC-ML, best checkpoint (published)": (0.2038, 0.2567, 0.1166, 0.0992),
    "PAC-ML, final epoch (published)": (0.2209, 0.2641, 0.1247, 0.1037),
}
"""Means of three seeds, from the published code's stored outputs."""

MUST, REACH = (0.185, 0.2567, 0.110, 0.099), (0.16, 0.22, 0.10, 0.085)
BELOW_MAX, BELOW_CONSTANT = 0.562, 0.10
SIMPLE = ("para-max", "para-min", "random")
SEARCHES = (ROLLOUTS, SAMPLED)
NOT_RUN = "Not run yet."
SHOWN = 1
"""Rules in a table: so many of the best on each distribution."""

Line = tuple[str, ...]


ALL = "".join(DISTRIBUTIONS)
"""The distributions, a letter each."""


class Spread(NamedTuple):
    """A mean over seeds and half the width of its 95% interval by Student's t, None of one seed."""

    mean: float
    margin: float | None


class Found:
    """The newest rates by policy, distribution and seed.

    Of a policy with weights only rows of its newest weights count: rates of two policies are not averaged.
    """

    def __init__(self, rows: Iterable[PacmlRow]) -> None:
        self.rows = [row for row in rows if row.protocol == PROTOCOL]
        newest = {(row.units, row.policy): row.weights for row in self.rows}
        self._rates: dict[tuple[object, ...], dict[int, float]] = {}
        for row in self.rows:
            if row.weights == newest[row.units, row.policy]:
                key = row.units, row.models, row.cluster, row.load, row.jobs, row.policy, row.distribution
                self._rates.setdefault(key, {})[row.seed] = row.blocked_or_running

    def rates(self, cell: Cell, policy: str, distributions: str) -> dict[int, float]:
        """Return the published blocking rate by seed, the mean over some distributions; only of seeds that have all."""
        every = [self._rates.get((*cell.place, policy, d), {}) for d in distributions]
        seeds = sorted(set.intersection(*(set(x) for x in every)))
        return {seed: float(np.mean([x[seed] for x in every])) for seed in seeds}

    def spread(self, cell: Cell, policy: str, distributions: str) -> Spread | None:
        """Return the mean of the rates over the seeds, None if there is none."""
        found = self.rates(cell, policy, distributions)
        return Spread(*interval(np.array(list(found.values())))) if found else None

    def apart(self, cell: Cell, policy: str, other: str, distributions: str) -> Spread | None:
        """Return the mean of the differences seed by seed, `policy` less `other`; None if no seed has both."""
        a, b = (self.rates(cell, name, distributions) for name in (policy, other))
        both = [a[seed] - b[seed] for seed in a if seed in b]
        return Spread(*interval(np.array(both))) if both else None

    def best(self, cell: Cell, policies: Sequence[str], distributions: str) -> str | None:
        """Return which policy has the least mean rate, chosen in hindsight; None if none was run."""
        means = {p: x.mean for p in policies if (x := self.spread(cell, p, distributions)) is not None}
        return min(means, key=lambda p: means[p]) if means else None


def rate(found: Spread | None, digits: int = 4) -> str:
    """Return a rate with its interval."""
    if found is None:
        return "-"
    return _short(found.mean, digits) + ("" if found.margin is None else f" ± {_short(found.margin, digits)}")


def signed(found: Spread | None, digits: int = 4) -> str:
    """Return a difference with its sign and its interval, in bold letters if it is below 0 beyond its interval."""
    if found is None:
        return "-"
    text = ("+" if found.mean > 0 else "") + rate(found, digits)
    return f"**{text}**" if below(found) else text


def below(found: Spread | None) -> bool:
    """Return whether a difference is significantly below 0."""
    return found is not None and found.margin is not None and found.mean + found.margin < 0


def verdict(found: Found, units: Units) -> str:
    """Return what was asked for and what came of it."""
    cell = _cell(units)
    if found.spread(cell, LEARNED, ALL) is None:
        return NOT_RUN
    lines: list[Line] = [("learned", *(rate(found.spread(cell, LEARNED, d)) for d in ALL))]
    lines += _as_published(found, cell) if units == "as-published" else _physical(found, cell)
    for what, policies in (("constant", CONSTANTS), ("rule with a block", RULES)):
        best = [found.best(cell, policies, d) for d in ALL]
        lines.append((f"best {what}, of each distribution", *(f"`{name}`" if name else "-" for name in best)))
        apart = (found.apart(cell, LEARNED, name, d) if name else None for name, d in zip(best, ALL, strict=True))
        lines.append(("learned less it, seed by seed", *map(signed, apart)))
    one = found.best(cell, (*SIMPLE, *CONSTANTS, *RULES), ALL)
    if one:
        lines.append((f"learned less `{one}`, best over all four", *_aparts(found, cell, one)))
    lines.append(("learned less the LP bound", *_aparts(found, cell, BOUND)))
    lines.append(("learned less the plan that knows all arrivals", *_aparts(found, cell, PLAN)))
    return table(("", *ALL), lines)


def _as_published(found: Found, cell: Cell) -> Iterator[Line]:
    learned = [found.spread(cell, LEARNED, d) for d in ALL]
    for words, goals in (("must be at most", MUST), ("to reach", REACH)):
        met = (x is not None and x.mean <= goal for x, goal in zip(learned, goals, strict=True))
        yield words, *(f"{_short(goal)}: {_yes(ok)}" for goal, ok in zip(goals, met, strict=True))
    most = [found.spread(cell, "para-max", d) for d in ALL]
    shares = [1 - x.mean / y.mean if x and y else None for x, y in zip(learned, most, strict=True)]
    asked = (None, None, BELOW_MAX, BELOW_MAX)
    yield (
        "below `para-max` by; C and D must be 56.2%",
        *("-" if x is None else f"{x:.1%}" + ("" if goal is None else f": {_yes(x >= goal)}")
          for x, goal in zip(shares, asked, strict=True)),
    )  # fmt: skip


def _physical(found: Found, cell: Cell) -> Iterator[Line]:
    every = (*SIMPLE, *CONSTANTS, *RULES)
    cells, constants, closed = [], [], []
    for d in ALL:
        learned, bound = found.spread(cell, LEARNED, d), found.spread(cell, BOUND, d)
        name, constant = found.best(cell, every, d), found.best(cell, CONSTANTS, d)
        cells.append(
            "-" if name is None else _yes((x := found.apart(cell, LEARNED, name, d)) is not None and x.mean < 0)
        )
        least = found.spread(cell, constant, d) if constant else None
        share = 1 - learned.mean / least.mean if learned and least else None
        constants.append("-" if share is None else f"{share:.1%}: {_yes(share >= BELOW_CONSTANT)}")
        part = (least.mean - learned.mean) / (least.mean - bound.mean) if learned and least and bound else None
        closed.append("-" if part is None else f"{part:.0%}")
    yield "below every baseline", *cells
    yield "below the best constant by; 10% on three", *constants
    yield "of the way from the best constant to the LP bound", *closed


def rates(found: Found, units: Units) -> str:
    """Return the blocking rates of all but the lesser rules."""
    cell = _cell(units)
    shown = {r for d in ALL for r in _ranked(found, cell, RULES, d)[:SHOWN]}
    own = ((LEARNED, LEARNED), ("the same without its guard", UNGUARDED))
    lines = [line for line in own if found.spread(cell, line[1], ALL)]
    lines += [(f"`{name}`", name) for name in (*SIMPLE, *CONSTANTS, *(r for r in RULES if r in shown))]
    lines += [("clairvoyant: plan by beam search", PLAN), ("clairvoyant: LP bound", BOUND)]
    cells: list[Line] = [(words, *(rate(found.spread(cell, name, d)) for d in ALL)) for words, name in lines]
    if all(set(line[1:]) == {"-"} for line in cells):
        return NOT_RUN
    if units == "as-published":
        at = sum(line[0] in dict(own) for line in cells)
        cells[at:at] = [(words, *map(_short, figures)) for words, figures in PUBLISHED.items()]
    return table(("", *ALL), cells)


def zero_shot(found: Found, suite: str) -> str:
    """Return a line for each setting of a suite: rates, and differences to the best constant."""
    lines: list[Line] = []
    for cell in SUITES[suite]:
        if found.spread(cell, LEARNED, ALL) is None:
            continue
        cells = []
        for d in ALL:
            name = found.best(cell, CONSTANTS, d)
            apart = found.apart(cell, LEARNED, name, d) if name else None
            cells.append(f"{rate(_alone(found.spread(cell, LEARNED, d)), 3)} {signed(apart, 3)}")
        lines.append((_where(cell), *cells))
    if not lines:
        return NOT_RUN
    words = [f"Above the best constant {_worse(found, suite, LEARNED)}."]
    if any(found.spread(cell, UNGUARDED, ALL) for cell in SUITES[suite]):
        words.append(f"Without the guard {_worse(found, suite, UNGUARDED).partition(':')[0]}.")
    return "\n\n".join((table(("", *ALL), lines), *words))


def _worse(found: Found, suite: str, policy: str) -> str:
    """Return in how many cases of a suite a policy is above the best constant, and where by more than a point."""
    points: dict[str, float] = {}
    for cell in SUITES[suite]:
        for d in ALL:
            name = found.best(cell, CONSTANTS, d)
            if name and (apart := found.apart(cell, policy, name, d)) is not None:
                points[f"{_where(cell)}, {d}"] = 100 * apart.mean
    far = [f"{where}: {more:+.1f} points" for where, more in points.items() if more > 1]
    words = f"in {sum(x > 0 for x in points.values())} of {len(points)} cases, by more than 1 point in {len(far)}"
    return words + (f": {'; '.join(far)}" if far else "")


def searches(found: Found) -> str:
    """Return what search with the true distribution comes to, on the seeds that it was run on."""
    lines: list[Line] = []
    for cell in SUITES["search"]:
        for name in SEARCHES:
            if found.spread(cell, name, ALL) is None:
                continue
            seeds = len(found.rates(cell, name, ALL))
            lines.append((f"{name}, {cell.units}, {seeds} seeds", *(rate(found.spread(cell, name, d)) for d in ALL)))
            lines.append(("learned less it", *_aparts(found, cell, name)))
    return table(("", *ALL), lines) if lines else NOT_RUN


def ablations(found: Found) -> str:
    """Return the rates of the variants, and their differences to the whole."""
    parts = []
    for units in ("as-published", "physical"):
        cell, lines = _cell(units), list[Line]()
        for name in (*ABLATIONS, LEARNED):
            if found.spread(cell, name, ALL) is None:
                continue
            words = "as shipped, trained longer" if name == LEARNED else name
            apart = "" if name == ABLATIONS[0] else signed(found.apart(cell, name, ABLATIONS[0], ALL))
            lines.append((words, *(rate(found.spread(cell, name, d)) for d in (*ALL, ALL)), apart))
        if any(line[0] in ABLATIONS for line in lines):
            parts += [f"**{units}**", table(("", *ALL, "mean", "less both"), lines)]
    return "\n\n".join(parts) if parts else NOT_RUN


def provenance(found: Found) -> str:
    """Return where the rows come from."""
    lines = []
    for units in ("as-published", "physical"):
        rows = [row for row in found.rows if row.units == units]
        learned = [row for row in rows if row.policy == LEARNED]
        if rows:
            commits = ", ".join(f"`{x}`" for x in sorted({row.commit for row in rows}))
            days = sorted({row.date[:10] for row in rows})
            weights = f"`{learned[-1].weights}`" if learned else "-"
            lines.append((units, weights, f"{len(rows):,}", commits, " to ".join(dict.fromkeys((days[0], days[-1])))))
    return table(("units", "weights", "rows", "commits", "date"), lines) if lines else NOT_RUN


TABLES: dict[str, Callable[[Found], str]] = {
    "verdict_published": lambda found: verdict(found, "as-published"),
    "rates_published": lambda found: rates(found, "as-published"),
    "verdict_physical": lambda found: verdict(found, "physical"),
    "rates_physical": lambda found: rates(found, "physical"),
    "models": lambda found: zero_shot(found, "models"),
    "loads": lambda found: zero_shot(found, "loads"),
    "clusters": lambda found: zero_shot(found, "clusters"),
    "search": searches,
    "ablations": ablations,
    "provenance": provenance,
}
"""By the name of its section on the page."""


def write_page(path: Path = PACML, page: Path = PAGE, check: bool = False) -> int:
    """Renew the page, see `renew`."""
    found = Found(read(path))
    tables = {name: partial(make, found) for name, make in TABLES.items()}
    return renew(page, tables, "pacml --page", check=check)


def _cell(units: str) -> Cell:
    return next(cell for cell in SUITES["main"] if cell.units == units)


def _aparts(found: Found, cell: Cell, other: str) -> Iterator[str]:
    return (signed(found.apart(cell, LEARNED, other, d)) for d in ALL)


def _ranked(found: Found, cell: Cell, policies: Sequence[str], distribution: str) -> list[str]:
    means = {p: x.mean for p in policies if (x := found.spread(cell, p, distribution)) is not None}
    return sorted(means, key=lambda p: means[p])


def _where(cell: Cell) -> str:
    models = f"{cell.models} models" if len(GROUPS[cell.models]) > 1 else cell.models
    return f"{cell.units}, {models}, {cell.cluster}, load {cell.load:.0%}"


def _alone(found: Spread | None) -> Spread | None:
    return None if found is None else Spread(found.mean, None)


def _short(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def _yes(met: bool) -> str:
    return "yes" if met else "**no**"
