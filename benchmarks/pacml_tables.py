"""The tables of docs/pacml-results.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gangplan.simulator.metrics import interval
from gangplan.systems.pacml.arrivals import DISTRIBUTIONS
from gangplan.systems.pacml.step import Units

from .found import Found, table
from .pacml_suites import (
    BOTH,
    BOUND,
    CONSTANTS,
    DEGREE,
    GENERALISED,
    GRAPHS,
    GROUPS,
    KEPT,
    LEARNED,
    LOADS,
    PAST,
    PLAN,
    RANDOM,
    ROWS,
    RULES,
    SUITES,
    TRAINED,
    TWINS,
    UNGUARDED,
    WHOLE,
    Cell,
)
from .rows import Row
from .study import NOT_RUN, Tables

PUBLISHED = {
    "PAC-ML, best checkpoint (published)": (0.2038, 0.2567, 0.1166, 0.0992),
    "PAC-ML, final epoch (published)": (0.2209, 0.2641, 0.1247, 0.1037),
}
"""Means of three seeds, from the published code's stored outputs."""

Line = tuple[str, ...]

ALL = "".join(DISTRIBUTIONS)
"""The distributions, a letter each."""


class Spread(NamedTuple):
    """A mean over seeds and half the width of its 95% interval by Student's t, None of one seed."""

    mean: float
    margin: float | None


def alike(row: Row) -> tuple[str, str]:
    """Return whose rows must be of the same weights: those of a policy in the same units."""
    return row.task.case.partition(" ")[0], row.task.policy


def rates(found: Found, cell: Cell, policy: str, distributions: str) -> dict[int, float]:
    """Return the published blocking rate by seed, the mean over some distributions; only of seeds that have all."""
    every = [found.of(cell.case(d), policy, "blocked_or_running") for d in distributions]
    seeds = sorted(set.intersection(*(set(x) for x in every)))
    return {seed: float(np.mean([x[seed] for x in every])) for seed in seeds}


def spread(found: Found, cell: Cell, policy: str, distributions: str) -> Spread | None:
    """Return the mean of the rates over the seeds, None if there is none."""
    values = rates(found, cell, policy, distributions)
    return Spread(*interval(np.array(list(values.values())))) if values else None


def apart(found: Found, cell: Cell, policy: str, other: str, distributions: str) -> Spread | None:
    """Return the mean of the differences seed by seed, `policy` less `other`; None if no seed has both."""
    a, b = (rates(found, cell, name, distributions) for name in (policy, other))
    both = [a[seed] - b[seed] for seed in a if seed in b]
    return Spread(*interval(np.array(both))) if both else None


def best(found: Found, cell: Cell, policies: Sequence[str], distributions: str) -> str | None:
    """Return which policy has the least mean rate, chosen in hindsight; None if none was run."""
    means = {p: x.mean for p in policies if (x := spread(found, cell, p, distributions)) is not None}
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
    """Return the learned policy beside the best rivals of each distribution, and how far it is from each of them."""
    cell = _cell(units)
    if spread(found, cell, LEARNED, ALL) is None:
        return NOT_RUN
    lines: list[Line] = [("learned", *(rate(spread(found, cell, LEARNED, d)) for d in ALL))]
    for what, policies in (
        ("best constant", CONSTANTS), ("best rule with a block", RULES),
        ("the plan that knows all arrivals", (PLAN,)), ("the LP bound", (BOUND,)),
    ):  # fmt: skip
        names = [best(found, cell, policies, d) for d in ALL]
        cells = [
            f"{rate(_alone(spread(found, cell, name, d)))}" if name else "-" for name, d in zip(names, ALL, strict=True)
        ]
        if len(policies) > 1:
            cells = [f"`{name}` {x}" for x, name in zip(cells, names, strict=True)]
            less = (apart(found, cell, LEARNED, name, d) if name else None for name, d in zip(names, ALL, strict=True))
            cells = [f"{x}: {signed(y)}" for x, y in zip(cells, less, strict=True)]
        lines.append((what, *cells))
    return table(("", *ALL), lines)


def zero_shot(found: Found, suites: Sequence[str]) -> str:
    """Return a line for each setting: the learned rate less that of the best constant, chosen for each cell.

    Single models, loads between 50% and 150%, and other loads of large clusters are counted below the table only.
    """
    lines: list[Line] = []
    for name_of_suite, cell in ((name, cell) for name in suites for cell in SUITES[name]):
        hidden = (LOADS[0], LOADS[-1]) if name_of_suite == "clusters" else LOADS[1:-1]
        hidden = LOADS if name_of_suite == "loads" and cell.units == "physical" else hidden
        shown = len(GROUPS[cell.models]) > 1 and cell.load not in hidden
        if spread(found, cell, LEARNED, ALL) is None or not shown:
            continue
        cells = []
        for d in ALL:
            name = best(found, cell, CONSTANTS, d)
            cells.append(signed(apart(found, cell, LEARNED, name, d) if name else None, 3))
        lines.append((_where(cell), *cells))
    if not lines:
        return NOT_RUN
    words = [f"Of these and those not shown it is above {_worse(found, suites, LEARNED)}."]
    if any(spread(found, cell, UNGUARDED, ALL) for suite in suites for cell in SUITES[suite]):
        words.append(f"Without the guard {_worse(found, suites, UNGUARDED).partition(':')[0]}.")
    return "\n\n".join((table(("", *ALL), lines), *words))


def _worse(found: Found, suites: Sequence[str], policy: str) -> str:
    """Return in how many cases a policy is above the best constant, and where by more than a point."""
    points: dict[str, float] = {}
    for cell in (cell for suite in suites for cell in SUITES[suite]):
        for d in ALL:
            name = best(found, cell, CONSTANTS, d)
            if name and (more := apart(found, cell, policy, name, d)) is not None:
                points[f"{_where(cell)}, {d}"] = 100 * more.mean
    far = [f"{where}: {more:+.1f} points" for where, more in points.items() if more > 1]
    words = f"in {sum(x > 0 for x in points.values())} of {len(points)} cases, by more than 1 point in {len(far)}"
    return words + (f": {'; '.join(far)}" if far else "")


def searches(found: Found) -> str:
    """Return by how much more search and random scores block than the network on the same seeds, as published."""
    lines: list[Line] = []
    cell = _cell("as-published")
    for name in (next(iter(PAST)), RANDOM, BOTH):
        more = [apart(found, cell, name, LEARNED, d) for d in ALL]
        if all(more):
            lines.append((f"{name}, {max(len(rates(found, cell, name, d)) for d in ALL)} seeds", *map(signed, more)))
    return table(("less the network", *ALL), lines) if lines else NOT_RUN


def sources(found: Found) -> str:
    """Return where the gain over PAC-ML comes from, as published: the degree, the block, the network."""
    cell = _cell("as-published")
    own = next(iter(PUBLISHED.values()))
    lines: list[Line] = [("PAC-ML, best checkpoint (published)", *map(_short, own))]
    rows = (
        ("best constant degree, published first fit", CONSTANTS), ("**degree only, trained for that**", (DEGREE,)),
        ("best constant degree, best block", KEPT),
        ("learned, degree and block", (LEARNED,)),
    )  # fmt: skip
    told: dict[str, list[Spread | None]] = {}
    for words, policies in rows:
        names = [best(found, cell, policies, d) for d in ALL]
        told[words] = [spread(found, cell, name, d) if name else None for name, d in zip(names, ALL, strict=True)]
        if any(told[words]):
            lines.append((words, *map(rate, told[words])))
    learned = told["learned, degree and block"]
    block = "best constant degree, best block"
    shares = [
        f"{(one - x.mean) / (one - y.mean):.0%}" if x and y else "-"
        for one, x, y in zip(own, told[block], learned, strict=True)
    ]
    lines.append((f"share of the gain over PAC-ML by the {block}", *shares))
    return table(("", *ALL), lines)


def ablations(found: Found) -> str:
    """Return by how much more the variants block than the whole, in the mean of the distributions."""
    every = ("as-published", "physical")
    lines: list[Line] = []
    for name in ("totals", *TRAINED, LEARNED):
        less = [apart(found, _cell(units), name, WHOLE, ALL) for units in every]
        if name != WHOLE and any(less):
            lines.append(("as shipped, trained longer" if name == LEARNED else name, *map(signed, less)))
    return table((f"mean of A to D, less {WHOLE}", *every), lines) if lines else NOT_RUN


def generalises(found: Found) -> str:
    """Return by how much more it blocks with the op graph than without, over all trainings."""
    cells = GENERALISED

    def averaged(cell: Cell, policies: Sequence[str]) -> dict[int, float]:
        every = [rates(found, cell, name, ALL) for name in policies]
        return {seed: float(np.mean([x[seed] for x in every])) for seed in set.intersection(*map(set, every))}

    twins = [(averaged(cell, TWINS[GRAPHS]), averaged(cell, TWINS[ROWS])) for cell in cells]
    less = [signed(_mean([x[s] - y[s] for s in x if s in y])) for x, y in twins]
    heads = (f"{cell.units}, {cell.models} models" for cell in cells)
    return table(("mean of A to D", *heads), [(f"{GRAPHS}, less without", *less)])


TABLES: Tables = {
    "sources": sources,
    "verdict_published": lambda found: verdict(found, "as-published"),
    "verdict_physical": lambda found: verdict(found, "physical"),
    "elsewhere": lambda found: zero_shot(found, ("models", "loads", "clusters")),
    "search": searches,
    "ablations": ablations,
    "generalises": generalises,
}
"""By the name of its section on the page."""


def _cell(units: str) -> Cell:
    return next(cell for cell in SUITES["main"] if cell.units == units)


def _where(cell: Cell) -> str:
    return f"{cell.units} {cell.cluster}, {cell.models}, {cell.load:.0%}"


def _mean(values: Sequence[float]) -> Spread | None:
    return Spread(*interval(np.array(values))) if values else None


def _alone(found: Spread | None) -> Spread | None:
    return None if found is None else Spread(found.mean, None)


def _short(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}f}".replace("0.", ".", 1)
