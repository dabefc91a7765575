"""A model of whole numbers, as CP-SAT has it, as MiniZinc and as pseudo-Boolean text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from gangplan.instances import InstanceError
from gangplan.solvers.plain import Cumulative, Entry, ModelRow, OptionalInterval, PlainRows, Sum

Terms = dict[int, int]


class Integers:
    """The model: variables from low to high, conditions, pairs of intervals of which one is first, cumulatives.

    Args:
        rows: with a name for each letter.
        factor: what 1 of the goal of the rows is in the goal of the problem.
    """

    def __init__(self, rows: PlainRows, factor: float) -> None:
        self.rows, self.factor, self.goal = rows, factor, rows.goal.terms
        self.names, self.low, self.high = ([getattr(x, end) for x in rows.columns] for end in ("letter", "low", "high"))
        self.offset = rows.goal.constant + rows.constant * rows.scale
        offset = f" {factor * self.offset:+.15g}" if self.offset else ""
        self.said = f"goal = {factor:.15g} x objective{offset}"
        self.conditions: list[ModelRow] = []
        self.pairs: list[tuple[str, OptionalInterval, OptionalInterval]] = []
        self.cumulatives: list[Cumulative] = []
        for entry in rows.entries:
            if isinstance(entry, ModelRow):
                self.conditions.append(entry._replace(terms=dict(sorted(entry.terms.items()))))
            elif isinstance(entry, OptionalInterval):
                whole = entry.start + entry.size - entry.end
                side = -whole.constant
                if any(whole.terms.values()) or side:
                    self.conditions.append(ModelRow(entry.letter, whole.terms, side, side, entry.given))
            elif entry.demands:
                self.cumulatives.append(entry)
            else:
                self.pairs += [(entry.letter, a, b) for a, b in combinations(self.held(entry), 2)]

    def held(self, of: Cumulative) -> list[OptionalInterval]:
        """Return the intervals of an entry."""
        return [self.rows.entries[i] for i in of.intervals]  # type: ignore[misc]

    @property
    def proto(self) -> Any:
        """The model of CP-SAT, its goal that of the problem."""
        from gangplan.solvers.cpsat_solver import model_of

        found = model_of(self.rows).proto
        found.objective.offset, found.objective.scaling_factor = self.offset, self.factor
        return found

    @property
    def constant(self) -> int:
        """What the objective is if all its variables are at their lower ends."""
        return sum(a * self.low[j] for j, a in self.goal.items())

    def ends(self, terms: Terms) -> tuple[int, int]:
        """Return the least and the most that terms can be."""
        least = sum(a * (self.low[j] if a > 0 else self.high[j]) for j, a in terms.items())
        return least, sum(a * (self.high[j] if a > 0 else self.low[j]) for j, a in terms.items())


def minizinc(model: Integers) -> Iterator[str]:
    """Yield the lines of a model in MiniZinc."""
    yield f"% {model.said}"
    if model.cumulatives:
        yield 'include "cumulative.mzn";'
    for name, low, high in zip(model.names, model.low, model.high, strict=True):
        yield f"var {low}..{high}: '{name}';"
    for row in model.conditions:
        body = _said(model, row.terms)
        if row.least == row.most:
            yield f"constraint {_if(model, row.given)}{body} = {row.least}; % {row.letter}"
            continue
        for sign, end in ((">=", row.least), ("<=", row.most)):
            if end is not None:
                yield f"constraint {_if(model, row.given)}{body} {sign} {end}; % {row.letter}"
    for name, a, b in model.pairs:
        either = (f"{_affine_said(model, x.end)} <= {_affine_said(model, y.start)}" for x, y in ((a, b), (b, a)))
        orders = " \\/ ".join(either)
        yield f"constraint {_if(model, (*a.given, *b.given))}({orders}); % {name}"
    for held in model.cumulatives:
        intervals = model.held(held)
        starts = ", ".join(_affine_said(model, x.start) for x in intervals)
        sizes = ", ".join(str(x.size) for x in intervals)
        inside = zip(held.demands, intervals, strict=True)
        demands = ", ".join(f"{d} * bool2int({_all(model, x.given)})" for d, x in inside)
        yield f"constraint cumulative([{starts}], [{sizes}], [{demands}], {held.capacity}); % {held.letter}"
    yield f"solve minimize {_said(model, model.goal)};"


def _if(model: Integers, given: tuple[int, ...]) -> str:
    return f"({_all(model, given)}) -> " if given else ""


def _all(model: Integers, given: tuple[int, ...]) -> str:
    return " /\\ ".join(f"'{model.names[max(j, -j - 1)]}' = {int(j >= 0)}" for j in given) or "true"


def _said(model: Integers, terms: Terms) -> str:
    return " + ".join(f"{a} * '{model.names[j]}'" if a != 1 else f"'{model.names[j]}'" for j, a in terms.items()) or "0"


def _affine_said(model: Integers, x: Sum) -> str:
    return " + ".join([_said(model, x.terms)] * bool(x.terms) + [str(x.constant)] * bool(x.constant or not x.terms))


def pseudo_boolean(model: Integers) -> list[str]:
    """Return the lines of a model in OPB, whose objective is without `Integers.constant`.

    A variable from l to u is l plus bits. A row under a condition is let off what it may miss where that does not hold.
    Of two intervals on one machine a bit says which is first.
    """
    if model.cumulatives:
        words = "is a cumulative constraint, which OPB has not: write .mzn or .lp"
        raise InstanceError("path", f"{model.cumulatives[0].letter} {words}")
    return _Bits(model).lines()


class _Bits:
    def __init__(self, model: Integers) -> None:
        self.model, self.count = model, 0
        self.bits: list[list[tuple[int, int]]] = []
        self.rows, self.comments = list[str](), list[str]()
        for name, low, high in zip(model.names, model.low, model.high, strict=True):
            self._variable(name, low, high)

    def lines(self) -> list[str]:
        for row in self.model.conditions:
            self._condition(row.given, row.terms, row.least, row.most)
        for name, a, b in self.model.pairs:
            first = self._variable(f"{name}, the first of two is first", 0, 1)
            for x, y, literal in ((a, b, first), (b, a, -first - 1)):
                wait = y.start - x.end
                self._condition((*a.given, *b.given, literal), wait.terms, -wait.constant, None)
        goal, constant = self._terms(self.model.goal)
        head = [f"* #variable= {self.count} #constraint= {len(self.rows)}", f"* {self.model.said}"]
        head += [f"* objective = {constant} + what is minimised here"] if constant else []
        minimise = " ".join(["min:", *(f"{a:+d} x{bit}" for a, bit in goal), ";"])
        return [*head, *self.comments, minimise, *self.rows]

    def _variable(self, name: str, low: int, high: int) -> int:
        """Add the bits of a variable and return its number; those of another one begin where these end."""
        own = [(2**k, self.count + k + 1) for k in range((high - low).bit_length())]
        self.count += len(own)
        self.bits.append(own)
        said = " ".join([str(low), *(f"+{by} x{bit}" for by, bit in own)]) if (low, high) != (0, 1) else f"x{own[0][1]}"
        self.comments.append(f"* {name} = {said}")
        if high - low + 1 & high - low:  # fewer values than its bits have
            self._at_least([(-by, bit) for by, bit in own], low - high)
        return len(self.bits) - 1

    def _terms(self, terms: Terms) -> tuple[list[tuple[int, int]], int]:
        """Return terms over bits, and the constant beside them."""
        bits = [(a * by, bit) for j, a in terms.items() for by, bit in self.bits[j] if a]
        return bits, sum(a * self.model.low[j] for j, a in terms.items())

    def _condition(self, given: tuple[int, ...], terms: Terms, least: int | None, most: int | None) -> None:
        for sign, end, extreme in zip((1, -1), (least, most), self.model.ends(terms), strict=True):
            missing = 0 if end is None else sign * (end - extreme)
            if end is None or missing <= 0:
                continue  # it holds whatever happens
            own, constant = self._terms({j: sign * a for j, a in terms.items()})
            side = sign * end - constant
            for j in given:  # + missing x (1 - literal)
                bits, holds = self.bits[max(j, -j - 1)], j >= 0
                if bits:
                    own.append((-missing if holds else missing, bits[0][1]))
                side -= missing * (holds if bits else self.model.low[max(j, -j - 1)] != holds)
            self._at_least(own, side)

    def _at_least(self, terms: list[tuple[int, int]], side: int) -> None:
        total: Terms = {}
        for a, bit in terms:
            total[bit] = total.get(bit, 0) + a
        self.rows.append(" ".join([*(f"{a:+d} x{bit}" for bit, a in total.items() if a), f">= {side} ;"]))


def columns_of(entry: Entry) -> list[int]:
    """Return the columns of a row or interval, those of its condition first."""
    if isinstance(entry, Cumulative):
        return []
    parts = [entry] if isinstance(entry, ModelRow) else [entry.start, entry.end]
    return [*(max(j, -j - 1) for j in entry.given), *(j for part in parts for j in sorted(part.terms))]
