"""What the rows of a run say: gaps, profiles, curves over time, exponents, and tests of paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

import numpy as np

from gangplan.instances.arrays import FloatArray

from .rows import UNSUITED, BenchRow
from .suite import Instance

K = TypeVar("K")
_RESAMPLES = 2000
_EXACT = 12
"""Instances up to which a permutation test tries all signs."""
_SIGNS = 20_000
"""Random signs that it tries of more instances."""


@dataclass(frozen=True, slots=True)
class Results:
    """The rows that count, the newest of each solve, and the best value and bound known of each instance.

    Attributes:
        rows: of each objective on those instances and seeds that all its methods were given at all their deadlines,
            so that every mean and test is over the same; a solve that was skipped is one of them.
        best: of these instances.
        left: sentences on what was left out.
        refused: rows whose bounds count as none, with the reason among their notes.
    """

    rows: tuple[BenchRow, ...]
    best: Mapping[str, Instance]
    left: tuple[str, ...] = ()
    refused: tuple[BenchRow, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[BenchRow], known: Iterable[Instance]) -> Results:
        """Return the results of a run; an instance that nobody has a plan of, or that has none, does not count."""
        best = {x.id: x for x in known}
        place = {name: i for i, name in enumerate(best)}
        newest = {row.key: row for row in rows if row.instance in best and best[row.instance].hash == row.hash}
        counted = [row for row in newest.values() if row.status != UNSUITED]
        for row in counted:
            if row.value is not None:
                known_best = replace(best[row.instance], zero=row.zero)
                best[row.instance] = known_best.better(row.value, None, row.method, row.seconds)
        kept = [row for row in counted if best[row.instance].value is not None]
        kept.sort(key=lambda row: (place[row.instance], row.deadline, row.method != "auto"))
        common, left = _common(kept)
        lies = [row for row in common if _disproved(row, best[row.instance])]
        for method, some in grouped(lies, lambda row: row.method).items():
            left.append(f"{method} claimed {len(some)} bounds that a verified plan disproves: they count as none.")
        refused = tuple(replace(row, notes=f"a verified plan disproves its bound of {row.bound:.6g}") for row in lies)
        common = [replace(x, status="FEASIBLE", bound=None) if x in lies and x.value is not None else x for x in common]
        if unsuited := dict.fromkeys(row.method for row in newest.values() if row.status == UNSUITED):
            words = "Left out of objectives that they declared beforehand not to be theirs"
            left.append(f"{words}: {', '.join(unsuited)}.")
        return cls(tuple(common), {row.instance: best[row.instance] for row in common}, tuple(left), refused)

    def gap(self, row: BenchRow) -> float:
        """Return the gap of a row to the best known value, from 0 to 1; 1 without a plan."""
        return row.gap_to(self.best[row.instance].value)

    def open(self, row: BenchRow) -> float:
        """Return the gap of a row to the best bound that is known."""
        return row.gap_to(self.best[row.instance].bound)

    def at(self, deadline: float) -> list[BenchRow]:
        """Return the rows of a deadline."""
        return [row for row in self.rows if row.deadline == deadline]

    @property
    def deadlines(self) -> list[float]:
        """The deadlines, ascending."""
        return sorted({row.deadline for row in self.rows})


def _disproved(row: BenchRow, best: Instance) -> bool:
    return row.bound is not None and replace(best, bound=row.bound).better(None, None, "", None).bound is None


def _common(rows: Sequence[BenchRow]) -> tuple[list[BenchRow], list[str]]:
    """Return the rows on instances and seeds that all methods of their topic were given, and what that leaves out."""
    common, left = set[tuple[str, int]](), []
    for topic, own in grouped(rows, lambda row: row.topic).items():
        some_of = grouped(own, lambda x: (x.method, x.deadline))
        given = {of: {(x.instance, x.seed) for x in some} for of, some in some_of.items()}
        shared, every = set.intersection(*given.values()), set.union(*given.values())
        common |= shared
        if every - shared:
            few = ", ".join(dict.fromkeys(method for (method, _), some in given.items() if some != every))
            words = f"{len(every - shared)} of {len(every)} pairs of instance and seed of {topic} are left out"
            left.append(f"{words}: {few} had no solve of them, or not at every deadline.")
    return [row for row in rows if (row.instance, row.seed) in common], left


def grouped(rows: Iterable[BenchRow], key: Callable[[BenchRow], K]) -> dict[K, list[BenchRow]]:
    """Return the rows by a key, in the order in which keys come first."""
    found: dict[K, list[BenchRow]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def interval(values: Iterable[tuple[str, float]]) -> tuple[float, float, float]:
    """Return the mean over instances and its 95% interval, by the bootstrap: gaps are not spread evenly.

    Instances are drawn, then of each as many of its solves as it has: more seeds say nothing of other instances.

    Args:
        values: instances, each with a value; of several solves several times.
    """
    found: dict[str, list[float]] = {}
    for instance, value in values:
        found.setdefault(instance, []).append(value)
    drawn, seeds = np.random.default_rng(0), np.random.default_rng(1)
    means = []
    for solves in map(np.array, found.values()):
        means.append(solves[seeds.integers(0, len(solves), (_RESAMPLES, len(solves)))].mean(axis=1))
    each, at = np.array(means), drawn.integers(0, len(means), (_RESAMPLES, len(means)))
    low, high = np.percentile(each[at, np.arange(_RESAMPLES)[:, None]].mean(axis=1), [2.5, 97.5])
    return float(np.mean([np.mean(x) for x in found.values()])), float(low), float(high)


def _pairs(rows: Sequence[BenchRow], first: str) -> dict[str, list[tuple[BenchRow, BenchRow]]]:
    """Return for every other method the rows of `first` and its own, on the instances and seeds that both ran."""
    by_method = {m: {(r.instance, r.seed): r for r in x} for m, x in grouped(rows, lambda r: r.method).items()}
    mine = by_method.pop(first, {})
    return {m: [(mine[key], row) for key, row in other.items() if key in mine] for m, other in by_method.items()}


def paired(results: Results, rows: Sequence[BenchRow], first: str) -> dict[str, tuple[int, float, float, float, float]]:
    """Return for every other method, on the instances and seeds that both ran, how much larger its gap is on average.

    Returns:
        Number of instances, mean difference of gaps, its 95% interval, see `interval`, and the p of a `permuted` test.
    """
    found = {}
    for method, pairs in _pairs(rows, first).items():
        apart = [(own.instance, results.gap(theirs) - results.gap(own)) for own, theirs in pairs]
        each = [float(np.mean([x for name, x in apart if name == one])) for one in dict.fromkeys(x for x, _ in apart)]
        if each:
            found[method] = len(each), *interval(apart), permuted(each)
    return found


def permuted(values: Sequence[float]) -> float:
    """Return how likely a mean as far from 0 is if each sign is a toss: a two-sided paired permutation test.

    Up to twelve instances try all signs, more of them 20,000 random ones.
    """
    n, x = len(values), np.array(values)
    if n <= _EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=n)))
    else:
        signs = np.vstack([np.ones(n), np.random.default_rng(0).choice((-1.0, 1.0), (_SIGNS, n))])
    return float((np.abs(signs @ x) >= abs(x.sum()) * (1 - 1e-9)).mean())


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Return the p-values of several tests corrected by Holm (1979): below 0.05 errs in 5% of the families at most."""
    found, least = {}, 0.0
    for i, key in enumerate(sorted(p, key=lambda key: p[key])):
        found[key] = least = max(least, min(1.0, p[key] * (len(p) - i)))
    return found


def times_longer(rows: Sequence[BenchRow], first: str) -> dict[str, tuple[int, int, int, float]]:
    """Return how many times the processor seconds of one method others take to the proof, or to where they gave up.

    Processor seconds, at least a millisecond each: of a shared machine the clock on the wall says little. Whoever
    gives up counts with the deadline at least, so that to decline is no shortcut.

    Returns:
        Pairs of solves of an instance with a seed, how many `first` claims and how many the other, and the geometric
        mean of the ratios. Where the other claims none, its ratio is a bound from below.
    """
    found = {}
    for method, pairs in _pairs(rows, first).items():
        if pairs:
            ratios = [_cost(theirs) / _cost(own) for own, theirs in pairs]
            proved, others = (sum(pair[side].status == "OPTIMAL" for pair in pairs) for side in (0, 1))
            found[method] = len(pairs), proved, others, float(np.exp(np.mean(np.log(ratios))))
    return found


def _cost(row: BenchRow) -> float:
    return max(row.cpu, 1e-3 if row.status == "OPTIMAL" else row.deadline)


def curve(results: Results, rows: Sequence[BenchRow], times: FloatArray) -> FloatArray:
    """Return the mean gap at each of `times`; 1 where there is no plan yet."""
    total = np.zeros(len(times))
    for row in rows:
        reached = np.ones(len(times))
        for second, value in row.trace:
            reached[times >= second] = results.gap(replace(row, value=value, trace=()))
        total += reached
    return np.asarray(total / max(1, len(rows)))


def integral(results: Results, rows: Sequence[BenchRow], deadline: float) -> float:
    """Return the primal integral: the mean gap over the time of the deadline (Berthold 2013)."""
    times = np.linspace(0.0, deadline, 501)[1:]
    return float(curve(results, rows, times).mean())


def profile(results: Results, rows: Sequence[BenchRow], within: FloatArray) -> FloatArray:
    """Return the share of the solves whose gap is at most each of `within` (Dolan and More 2002)."""
    gaps = np.array([results.gap(row) for row in rows])
    return np.asarray((gaps[:, None] <= within).mean(axis=0))


def exponent(rows: Sequence[BenchRow]) -> tuple[int, float, float] | None:
    """Return how seconds to the proof grow with the parts of a problem: n, the exponent, and its standard error.

    A least-squares line through logarithms, of what was claimed best in more than a millisecond; `None` of fewer than
    eight solves or where sizes are less than a factor of two apart.
    """
    proved = [row for row in rows if row.status == "OPTIMAL" and row.seconds > 1e-3]
    x = np.log([row.parts for row in proved])
    if len(proved) < 8 or np.ptp(x) < np.log(2):
        return None
    y = np.log([row.seconds for row in proved])
    slope, offset = np.polyfit(x, y, 1)
    rest = float(((y - slope * x - offset) ** 2).sum()) / (len(x) - 2)
    return len(x), float(slope), float(np.sqrt(rest / ((x - x.mean()) ** 2).sum()))
