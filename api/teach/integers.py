"""A model of CP-SAT as linear rows over whole numbers, and as MiniZinc and pseudo-Boolean text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from gangplan.instances import InstanceError

Terms = dict[int, int]
_INFINITE = 2**62
"""What CP-SAT writes for no limit is beyond it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A row least <= terms <= most that holds if all literals do; literal j is x_j = 1, and -j - 1 is x_j = 0."""

    name: str
    given: tuple[int, ...]
    terms: Terms
    least: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class Interval:
    """Something that takes place from start to end if all literals hold; each end is terms and a constant."""

    given: tuple[int, ...]
    start: tuple[Terms, int]
    size: tuple[Terms, int]
    end: tuple[Terms, int]


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Intervals that together hold no more than there is, each its demand."""

    name: str
    intervals: tuple[Interval, ...]
    demands: tuple[int, ...]
    capacity: int


class Integers:
    """The model: variables from low to high, conditions, pairs of intervals of which one is first, cumulatives."""

    def __init__(self, proto: Any) -> None:
        self.names = [x.name for x in proto.variables]
        domains = [[*x.domain] for x in proto.variables]  # whose own [-1] is [0]
        self.low, self.high = [ends[0] for ends in domains], [ends[-1] for ends in domains]
        goal = proto.objective
        self.goal = dict(zip(goal.vars, goal.coeffs, strict=True))
        offset = f" {goal.scaling_factor * goal.offset:+.15g}" if goal.offset else ""
        self.said = f"goal = {goal.scaling_factor:.15g} x objective{offset}"
        self.conditions: list[Condition] = []
        self.pairs: list[tuple[str, Interval, Interval]] = []
        self.cumulatives: list[Cumulative] = []
        intervals: dict[int, Interval] = {}
        for i, row in enumerate(proto.constraints):
            given = tuple(row.enforcement_literal)
            if row.has_interval():
                span = row.interval
                start, size, end = (_affine(x) for x in (span.start, span.size, span.end))
                intervals[i] = Interval(given, start, size, end)
                whole = _sum((1, *start), (1, *size), (-1, *end))
                self._add(row.name, given, whole[0], -whole[1], -whole[1])
            elif row.has_no_overlap():
                held = [intervals[k] for k in row.no_overlap.intervals]
                self.pairs += [(row.name, a, b) for a, b in combinations(held, 2)]
            elif row.has_cumulative():
                held = [intervals[k] for k in row.cumulative.intervals]
                demands = tuple(_affine(x)[1] for x in row.cumulative.demands)
                capacity = _affine(row.cumulative.capacity)[1]
                self.cumulatives.append(Cumulative(row.name, tuple(held), demands, capacity))
            else:
                self._linear(row, given)

    def _linear(self, row: Any, given: tuple[int, ...]) -> None:
        if row.has_linear():
            if len(row.linear.domain) != 2:
                raise InstanceError("model", f"{row.name} has a domain with holes, which has no linear row")
            terms: Terms = {}
            for j, a in zip(row.linear.vars, row.linear.coeffs, strict=True):
                terms[j] = terms.get(j, 0) + a
            least, most = row.linear.domain
            self._add(row.name, given, terms, *(x if abs(x) < _INFINITE else None for x in (least, most)))
        elif row.has_bool_and():
            for literal in row.bool_and.literals:
                self._add(row.name, given, *_counted([literal], 1, None))
        elif row.has_bool_or():
            self._add(row.name, given, *_counted(row.bool_or.literals, 1, None))
        elif row.has_exactly_one():
            self._add(row.name, given, *_counted(row.exactly_one.literals, 1, 1))
        elif row.has_at_most_one():
            self._add(row.name, given, *_counted(row.at_most_one.literals, None, 1))
        else:
            raise InstanceError("model", f"{row.name} is of a kind that plain models do not have")

    def _add(self, name: str, given: tuple[int, ...], terms: Terms, least: int | None, most: int | None) -> None:
        if terms or (least or 0) > 0 or (most or 0) < 0:
            self.conditions.append(Condition(name, given, terms, least, most))

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
            yield f"constraint {_if(model, row.given)}{body} = {row.least}; % {row.name}"
            continue
        for sign, end in ((">=", row.least), ("<=", row.most)):
            if end is not None:
                yield f"constraint {_if(model, row.given)}{body} {sign} {end}; % {row.name}"
    for name, a, b in model.pairs:
        either = (f"{_affine_said(model, *x.end)} <= {_affine_said(model, *y.start)}" for x, y in ((a, b), (b, a)))
        orders = " \\/ ".join(either)
        yield f"constraint {_if(model, (*a.given, *b.given))}({orders}); % {name}"
    for held in model.cumulatives:
        starts, sizes = (
            ", ".join(_affine_said(model, *getattr(x, end)) for x in held.intervals) for end in ("start", "size")
        )
        inside = zip(held.demands, held.intervals, strict=True)
        demands = ", ".join(f"{d} * bool2int({_all(model, x.given)})" for d, x in inside)
        yield f"constraint cumulative([{starts}], [{sizes}], [{demands}], {held.capacity}); % {held.name}"
    yield f"solve minimize {_said(model, model.goal)};"


def _if(model: Integers, given: tuple[int, ...]) -> str:
    return f"({_all(model, given)}) -> " if given else ""


def _all(model: Integers, given: tuple[int, ...]) -> str:
    return " /\\ ".join(f"'{model.names[max(j, -j - 1)]}' = {int(j >= 0)}" for j in given) or "true"


def _said(model: Integers, terms: Terms) -> str:
    return " + ".join(f"{a} * '{model.names[j]}'" if a != 1 else f"'{model.names[j]}'" for j, a in terms.items()) or "0"


def _affine_said(model: Integers, terms: Terms, constant: int) -> str:
    return " + ".join([_said(model, terms)] * bool(terms) + [str(constant)] * bool(constant or not terms))


def pseudo_boolean(model: Integers) -> list[str]:
    """Return the lines of a model in OPB, whose objective is without `Integers.constant`.

    A variable from l to u is l plus bits. A row under a condition is let off what it may miss where that does not hold.
    Of two intervals on one machine a bit says which is first.
    """
    if model.cumulatives:
        words = "is a cumulative constraint, which OPB has not: write .mzn or .lp"
        raise InstanceError("path", f"{model.cumulatives[0].name} {words}")
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
                terms, constant = _sum((1, *y.start), (-1, *x.end))
                self._condition((*a.given, *b.given, literal), terms, -constant, None)
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


def _affine(expression: Any) -> tuple[Terms, int]:
    return dict(zip(expression.vars, expression.coeffs, strict=True)), int(expression.offset)


def _sum(*parts: tuple[int, Terms, int]) -> tuple[Terms, int]:
    """Return the sum of factor x (terms + constant)."""
    total: Terms = {}
    for factor, terms, _ in parts:
        for j, a in terms.items():
            total[j] = total.get(j, 0) + factor * a
    return total, sum(factor * constant for factor, _, constant in parts)


def _counted(literals: Any, least: int | None, most: int | None) -> tuple[Terms, int | None, int | None]:
    """Return the row that so many of some literals hold."""
    terms: Terms = {}
    negative = sum(j < 0 for j in literals)
    for j in literals:
        k = max(j, -j - 1)
        terms[k] = terms.get(k, 0) + (1 if j >= 0 else -1)
    return terms, None if least is None else least - negative, None if most is None else most - negative
