"""Plain models as data: variables and rows stated once, whose numbers are those of one of two solvers.

`cpsat_solver` and `highs` hand them to the solvers, `gangplan.teach` shows them and writes them to files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import combinations
from math import floor
from typing import Any, NamedTuple, TypeAlias

from gangplan.instances.lazy import Later

from .run import Run

ROWS = 500_000
"""Maximum number of rows of a plain model: they are built in 5 to 20 s."""
FINE = 0.5
"""Share of the unit from which an objective leaves numbers fine enough to prove it."""
CAP = 2.0
"""Units that an amount counts at most: with more than one there is no plan, and digits of 1e9 would drown others."""
ABOVE_ONE = 1.001
"""The upper bound of times that need not exceed 1: with 1 itself HiGHS calls infeasible what lies on the edge."""
TICKS = 1 << 29
"""Ticks of the unit in CP-SAT: of larger factors than 2^31 presolve of OR-Tools 9.15 loses some, with the optimum."""
PARTS, FACTOR = 1 << 40, 1 << 24
"""Parts of a limit, and of a factor, in CP-SAT: sums of thousands stay within 64 bits."""
_OFTEN = 64
"""Rows between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A family of variables of a plain model; ``x`` has an index, such as 3 and 1, of its axes.

    Attributes:
        axes: what its indices count, e.g. ``op device``.
        seconds: whether it is in the unit of the objective, so that rows with it are too.
    """

    letter: str
    axes: str
    words: str
    seconds: bool = False


@dataclass(frozen=True, slots=True)
class Formulation:
    """A plain model in words: what its variables are, and what each letter of its constraints says.

    Attributes:
        constraints: (letter, formula, words); both solvers' models have them, unless the words say otherwise.
    """

    minimise: str
    variables: tuple[Variable, ...]
    constraints: tuple[tuple[str, str, str], ...]


class Sum:
    """A linear expression: a number for each column, by its place, and a constant."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: dict[int, Any], constant: Any = 0) -> None:
        self.terms, self.constant = terms, constant

    def __add__(self, other: Any) -> Sum:
        return add_up((self, other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Sum:
        return add_up((self, -other))

    def __rsub__(self, other: Any) -> Sum:
        return add_up((-self, other))

    def __mul__(self, factor: Any) -> Sum:
        return Sum({j: factor * a for j, a in self.terms.items()} if factor else {}, factor * self.constant)

    __rmul__ = __mul__

    def __neg__(self) -> Sum:
        return self * -1

    def at(self, value: Callable[[int], Any]) -> Any:
        """Return the value of the sum, given those of columns."""
        return sum(a * value(j) for j, a in self.terms.items()) + self.constant


def add_up(parts: Iterable[Any]) -> Sum:
    """Return the sum of expressions and numbers, in time that does not grow with the square of their number."""
    found, constant = dict[int, Any](), 0
    for part in parts:
        if isinstance(part, Sum):
            constant += part.constant
            for j, a in part.terms.items():
                found[j] = found[j] + a if j in found else a
        else:
            constant += part
    return Sum(found, constant)


class ModelColumn(NamedTuple):
    """A variable, with its bounds; HiGHS has columns in the order of their labels, on which its plans depend."""

    letter: str
    at: tuple[int, ...]
    low: Any
    high: Any
    whole: bool
    label: str


class ModelRow(NamedTuple):
    """A constraint: least <= terms <= most, `None` where there is no limit, if all literals hold.

    Attributes:
        given: j stands for column j being 1, -j - 1 for 0.
        one: whether the terms are literals of which one holds.
    """

    letter: str
    terms: dict[int, Any]
    least: Any
    most: Any
    given: tuple[int, ...] = ()
    one: bool = False


class OptionalInterval(NamedTuple):
    """Something that takes place from start to end if a literal holds."""

    letter: str
    start: Sum
    size: int
    end: Sum
    given: tuple[int]


class Cumulative(NamedTuple):
    """Entries, intervals, that hold no more than there is at any time, each its demand; without any one at a time."""

    letter: str
    intervals: tuple[int, ...]
    demands: tuple[int, ...] = ()
    capacity: int = 1


Entry: TypeAlias = ModelRow | OptionalInterval | Cumulative
Values: TypeAlias = Callable[[Any], Any]
"""Gives the value of an expression in a solution."""
Solve: TypeAlias = "Callable[[PlainRows, Callable[[Values], Any]], None]"
"""Minimises a model; has what makes a plan of a solution, `None` if it is none when rounded."""


def literal(binary: Sum) -> int:
    """Return the place of a binary's column, or of that of x in 1 - x what `ModelRow.given` has for 0."""
    ((j, sign),) = binary.terms.items()
    return j if sign > 0 else -j - 1


class PlainRows:
    """A model that is stated by rows, for CP-SAT: amounts are whole ticks, rounded down, so that bounds hold.

    Attributes:
        unit: of the objective, seconds; no plan that is looked for costs more.
        goal: to be minimised.
        start: values of whole numbers in a plan that is known.
        quotients: (quotient, dividend, divisor), rounded down.
        scale, constant: the goal is scale x (seconds - constant).
    """

    _everything = False

    def __init__(self, run: Run, unit: float, solve: Solve) -> None:
        self.run, self.unit, self._solve, self._letter = run, unit, solve, ""
        self.columns, self.entries, self.goal = list[ModelColumn](), list[Entry](), Sum({})
        self.scale, self.constant, self._first = TICKS / unit, 0.0, dict[tuple[int, int], Sum]()
        self.start, self.quotients = dict[int, int](), list[tuple[Sum, int, Sum]]()

    def letter(self, name: str) -> None:
        """Say that the rows from here on are of constraint `name`."""
        self._letter = name

    def count(self, most: Any, name: str, *index: int, least: Any = 0, whole: bool = True, label: str = "") -> Sum:
        """Return a variable of a whole number."""
        place = len(self.columns)
        self.columns.append(ModelColumn(name, index, least, most, whole, label or f"x{place + 1}"))
        return Sum({place: 1})

    def binary(self, name: str, *index: int) -> Sum:
        """Return a variable of 0 or 1."""
        return self.count(1, name, *index)

    def implied(self, most: int, name: str, *index: int) -> Sum:
        """Return a variable of a number that need not be whole for the others to be right."""
        return self.count(most, name, *index)

    def amount(self, most: float, name: str, *index: int) -> Sum:
        """Return a variable in units."""
        return self.count(int(most * TICKS), name, *index)

    def defined(self, amount: Sum, name: str, *index: int) -> Sum:
        """Return an amount, by a name of its own where a solver needs one."""
        found = self.amount(1, name, *index)
        self.equal(amount, found)
        return found

    def units(self, value: float, most: float = 1.0) -> Any:
        """Return a value of the objective as a number of the model, no more than twice `most` units."""
        return self._number(min(value / self.unit, CAP * most), TICKS)

    def share(self, value: float) -> Any:
        """Return a share of a limit as a number of the model."""
        return self._number(min(value, CAP), PARTS)

    def _number(self, value: float, parts: int) -> Any:
        return floor(value * parts)

    def whole(self, size: int, of: int) -> Any:
        """Return a whole number, to be compared with what `of` of them are."""
        return size

    def ratio(self, value: float) -> tuple[float, int]:
        """Return a factor from 0 to 1 of variables as a quotient of numbers of the model."""
        return floor(value * FACTOR), FACTOR

    def row(self, left: Any, right: Any, *given: Sum, slack: int = 0, over: float | None = None) -> None:
        """Require left <= right if all binaries `given` are 1, but for `slack` where quotients are rounded.

        Args:
            over: what left exceeds right by at most where they are not, if less than bounds of variables say.
        """
        if isinstance(left, Sum) and left.terms:
            self.add(left - right, None, slack, given)
        else:
            self.add(add_up((right, -left)), -slack, None, given)

    def equal(self, left: Any, right: Any, *given: Sum) -> None:
        """Require left = right if all binaries `given` are 1."""
        self.add(add_up((left, -right)), 0, 0, given)

    def add(self, terms: Sum, least: Any, most: Any, given: Sequence[Sum] = (), *, one: bool = False) -> None:
        """Add a row as it is, and now and then look at the clock: `TimeoutError` once the run has stopped."""
        low, high = (None if end is None else end - terms.constant for end in (least, most))
        kept = {j: a for j, a in terms.terms.items() if a or self._everything}
        if kept or self._everything or (low or 0) > 0 or (high or 0) < 0:
            self.entries.append(ModelRow(self._letter, kept, low, high, tuple(map(literal, given)), one))
        if not len(self.entries) % _OFTEN and self.run.stopped:
            raise TimeoutError

    def interval(self, start: Sum, size: int, end: Sum, here: Sum) -> int:
        """Add what takes place from start to end if a binary is 1, and return its place."""
        self.entries.append(OptionalInterval(self._letter, start, size, end, (literal(here),)))
        return len(self.entries) - 1

    def together(self, intervals: Sequence[int], demands: Sequence[int] = (), capacity: int = 1) -> None:
        """Let intervals hold no more than there is at any time, each its demand; without demands keep them apart."""
        self.entries.append(Cumulative(self._letter, tuple(intervals), tuple(demands), capacity))

    def quotient(self, dividend: int, divisor: Sum, most: int, name: str, *index: int) -> Sum:
        """Return a variable that is a number divided by another, `most` at most; CP-SAT alone has such rows."""
        found = self.count(most, name, *index)
        self.quotients.append((found, dividend, divisor))
        return found

    def no_overlap(self, tasks: Iterable[tuple[Sum, Any, Sum, Sum]]) -> None:
        """Keep those of some tasks that are here, (start, length, end, binary), apart; the i-th is always the same."""
        self.together([self.interval(*task) for task in tasks])

    @property
    def lines(self) -> list[ModelRow]:
        """The entries that are linear: all of floats."""
        return [entry for entry in self.entries if isinstance(entry, ModelRow)]

    def minimise(self, goal: Any, plan: Callable[[Values], Any]) -> None:
        """Minimise; `plan` makes a plan of what gives the values of variables."""
        self.goal = add_up((goal,))
        self._solve(self, plan)


class _FloatRows(PlainRows):
    """Rows for HiGHS, in floats: under a condition that does not hold one is let off all that it may exceed."""

    _everything = True  # also rows and terms that say nothing: the plan that HiGHS finds depends on them

    def implied(self, most: int, name: str, *index: int) -> Sum:
        return self.count(most, name, *index, whole=False)

    def amount(self, most: float, name: str, *index: int) -> Sum:
        return self.count(most * ABOVE_ONE, name, *index, whole=False)

    def defined(self, amount: Sum, name: str, *index: int) -> Sum:
        return amount

    def _number(self, value: float, parts: int) -> Any:
        return float(value)

    def whole(self, size: int, of: int) -> Any:
        return size / of

    def ratio(self, value: float) -> tuple[float, int]:
        return value, 1

    def row(self, left: Any, right: Any, *given: Sum, slack: int = 0, over: float | None = None) -> None:
        row = add_up((left, -right))
        if over is None:
            over = row.constant + sum(max(0.0, a * self.columns[j].high) for j, a in row.terms.items())
        if over > 0:
            self.add(row - over * (len(given) - add_up(given)), None, 0)

    def equal(self, left: Any, right: Any, *given: Sum) -> None:
        if given:
            self.row(left, right, *given)
            self.row(right, left, *given)
        else:
            super().equal(left, right)

    def no_overlap(self, tasks: Iterable[tuple[Sum, Any, Sum, Sum]]) -> None:
        for (u, one), (v, two) in combinations(enumerate(tasks), 2):
            first = self._first[u, v] if (u, v) in self._first else self.binary("y", u, v)
            self._first[u, v] = first
            for (*_, end, here), (start, _, _, there), turn in ((one, two, first), (two, one, 1 - first)):
                self.row(end, start, here, there, turn, over=ABOVE_ONE)


float_rows: Callable[[Run, float, Solve], PlainRows] = _FloatRows
"""Begin a model for HiGHS."""
New = Callable[[float], PlainRows]
"""Begin a model in a unit."""


def refine(
    run: Run, by: str, rows: int, worst: float, attempt: Callable[[float], object], learnt: Sequence[object] = ()
) -> None:
    """Attempt a model with its objective in a unit, and again while a plan shows that to be coarse, or rows are learnt.

    Args:
        rows: of the model, at least; if they are too many, a note says so.
        worst: objective that the best plan does not exceed, the first unit if no plan is known.
        attempt: builds the model in the unit it is given, and solves it.
        learnt: what attempts add to if a plan that they drop teaches them rows.
    """
    if rows > ROWS:
        run.note(f"{by} left out: a model of {rows} rows is too large, {ROWS} are the most")
        return
    for unit in attempts(run, worst or 1.0, learnt, FINE):
        with run.phase(by):
            attempt(unit)


def attempts(run: Run, worst: float, learnt: Sequence[object], fine: float = 1.0) -> Iterator[float]:
    """Yield units for a model, again while a plan is below `fine` of the last one, or more was learnt; see `refine`."""
    unit, known = run.objective or worst, -1
    while not run.stopped and (len(learnt) > known or (run.objective or unit) < fine * unit):
        unit, known = run.objective or unit, len(learnt)
        yield unit


by_cpsat: Any = Later(f"{__package__}.cpsat_solver:minimise_rows")
by_highs: Any = Later(f"{__package__}.highs:minimise_rows")
"""Minimise a model by CP-SAT, one of `float_rows` by HiGHS."""


def both(solve: Callable[[Run, str, New], None]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return `plain_cpsat` and `plain_milp`, of what solves a model by a name, begun as that solver takes it.

    What they hand their model can be exchanged: their argument `minimise`.
    """

    @wraps(solve)
    def plain_cpsat(run: Run, prepared: object = None, minimise: Solve = by_cpsat) -> None:
        solve(run, "plain_cpsat", lambda unit: PlainRows(run, unit, minimise))

    @wraps(solve)
    def plain_milp(run: Run, prepared: object = None, minimise: Solve = by_highs) -> None:
        solve(run, "plain_milp", lambda unit: float_rows(run, unit, minimise))

    return plain_cpsat, plain_milp
