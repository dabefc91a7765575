"""What plain models share: a limit of size, a unit that is as fine as the plan is good, and the two solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import combinations
from math import floor
from typing import Any, Protocol

from gangplan.instances import verify

from .run import Run

ROWS = 500_000
"""Maximum number of rows of a plain model: PuLP and CP-SAT build them in 5 to 20 s."""
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
_OFTEN = 256
"""Rows between two looks at the clock."""
Minimise = Callable[[Run, Any, float, Callable[[], Any]], None]
"""Minimise a programme of PuLP: the run, the programme, the unit of its objective, what makes a plan of its values."""
Search = Callable[..., None]
"""Minimise a model of CP-SAT: has the arguments of `solve_cpsat`."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A family of variables of a plain model; ``x_3_1`` is x of its axes' items 3 and 1.

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


def letter(model: Any, name: str) -> None:
    """Say that the rows which `model`, of PuLP or CP-SAT, has from here on are of constraint `name`."""
    count = len(model.proto.constraints) if hasattr(model, "proto") else len(model.rows)
    vars(model).setdefault("letters", []).append((count, name))


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
    unit, known = run.objective or worst or 1.0, -1
    while not run.stopped and (len(learnt) > known or (run.objective or unit) < FINE * unit):
        unit, known = run.objective or unit, len(learnt)
        with run.phase(by):
            attempt(unit)


def solve_cpsat(run: Run, model: Any, scale: float, plan: Callable[[Any], Any], constant: float = 0.0) -> None:
    """Minimise by CP-SAT.

    Args:
        model: its objective is scale x (seconds - constant).
        plan: makes a plan of what gives the value of a variable.
    """
    from .cpsat_solver import cpsat_solver, minimise

    def checked(value: Any) -> Any:
        made = plan(value)
        if made is not None and verify(run.problem, made).ok:
            return made
        run.note("plain_cpsat: a plan is feasible only within the rounding of the model, so it is dropped")
        return None

    if not run.stopped:
        minimise(run, cpsat_solver(run), model, scale, checked, constant, by="plain_cpsat")


def solve_milp(run: Run, lp: Any, unit: float, plan: Callable[[], Any]) -> None:
    """Minimise by HiGHS; see `Minimise`."""
    from .pulp_solvers import minimise_lp

    if not run.stopped:
        minimise_lp(run, lp, unit, plan, by="plain_milp")


class Rows(Protocol):
    """A model that is stated once for both solvers, by rows; amounts are in units, shares are of a limit."""

    unit: float

    def letter(self, name: str) -> None:
        """Say that the rows from here on are of constraint `name`."""

    def binary(self, name: str, *index: int) -> Any:
        """Return a variable of 0 or 1."""

    def no(self, binary: Any) -> Any:
        """Return 1 less a binary, for a condition."""

    def count(self, most: int, name: str, *index: int) -> Any:
        """Return a variable of a whole number."""

    def implied(self, most: int, name: str, *index: int) -> Any:
        """Return a variable of a number that need not be whole for the others to be right."""

    def amount(self, most: float, name: str, *index: int) -> Any:
        """Return a variable in units."""

    def defined(self, amount: Any, name: str, *index: int) -> Any:
        """Return an amount, by a name of its own where a solver needs one."""

    def units(self, value: float, most: float = 1.0) -> Any:
        """Return a value of the objective as a number of the model, no more than twice `most` units."""

    def share(self, value: float) -> Any:
        """Return a share as a number of the model."""

    def whole(self, size: int, of: int) -> Any:
        """Return a whole number, to be compared with what `of` of them are."""

    def ratio(self, value: float) -> tuple[float, int]:
        """Return a factor from 0 to 1 of variables as a quotient of numbers of the model."""

    def sum(self, terms: Iterable[Any]) -> Any:
        """Return the sum of many terms, in time that does not grow with their square."""

    def row(self, left: Any, right: Any, *given: Any, slack: int = 0, over: float | None = None) -> None:
        """Require left <= right if all binaries `given` are 1, but for `slack` where quotients are rounded.

        Args:
            over: what left exceeds right by at most where they are not, if less than bounds of variables say.
        """

    def equal(self, left: Any, right: Any, *given: Any) -> None:
        """Require left = right if all binaries `given` are 1."""

    def no_overlap(self, tasks: Sequence[tuple[Any, Any, Any, Any]]) -> None:
        """Keep those of some tasks that are here, (start, length, end, binary), apart; the i-th is always the same."""

    def minimise(self, objective: Any, plan: Callable[[Callable[[Any], float]], Any]) -> None:
        """Minimise; `plan` makes a plan of what gives the values of variables."""


def new_rows(run: Run, unit: float, minimise: Minimise | None = None, search: Search = solve_cpsat) -> Rows:
    """Return a model without rows: for what minimises a programme of PuLP, else for CP-SAT and `search`."""
    return _CpSat(run, unit, search) if minimise is None else _Milp(run, unit, minimise)


New = Callable[[float], Rows]
"""Begin a model in a unit."""


def both(solve: Callable[[Run, str, New], None]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return `plain_cpsat` and `plain_milp`, of what solves a model by a name, begun as that solver takes it.

    What they hand their model can be exchanged: their argument `minimise`.
    """

    @wraps(solve)
    def plain_cpsat(run: Run, prepared: object = None, minimise: Search = solve_cpsat) -> None:
        solve(run, "plain_cpsat", lambda unit: new_rows(run, unit, search=minimise))

    @wraps(solve)
    def plain_milp(run: Run, prepared: object = None, minimise: Minimise = solve_milp) -> None:
        solve(run, "plain_milp", lambda unit: new_rows(run, unit, minimise))

    return plain_cpsat, plain_milp


def _called(name: str, index: tuple[int, ...]) -> str:
    return "_".join([name, *map(str, index)])


class _CpSat:
    """Rows for CP-SAT: whole ticks, rounded down, so that bounds hold."""

    def __init__(self, run: Run, unit: float, search: Search) -> None:
        from ortools.sat.python import cp_model

        self.run, self.unit, self.model, self._search = run, unit, cp_model.CpModel(), search
        self._rows = 0

    def letter(self, name: str) -> None:
        letter(self.model, name)

    def binary(self, name: str, *index: int) -> Any:
        return self.model.new_bool_var(_called(name, index))

    def no(self, binary: Any) -> Any:
        return ~binary

    def count(self, most: int, name: str, *index: int) -> Any:
        return self.model.new_int_var(0, most, _called(name, index))

    implied = count

    def amount(self, most: float, name: str, *index: int) -> Any:
        return self.count(int(most * TICKS), name, *index)

    def defined(self, amount: Any, name: str, *index: int) -> Any:
        found = self.amount(1, name, *index)
        self.equal(amount, found)
        return found

    def units(self, value: float, most: float = 1.0) -> int:
        return floor(min(value / self.unit, CAP * most) * TICKS)

    def share(self, value: float) -> int:
        return floor(min(value, CAP) * PARTS)

    def whole(self, size: int, of: int) -> int:
        return size

    def ratio(self, value: float) -> tuple[float, int]:
        return floor(value * FACTOR), FACTOR

    def sum(self, terms: Iterable[Any]) -> Any:
        return sum(terms)

    def row(self, left: Any, right: Any, *given: Any, slack: int = 0, over: float | None = None) -> None:
        self._add(left <= right + slack, given)

    def equal(self, left: Any, right: Any, *given: Any) -> None:
        self._add(left == right, given)

    def _add(self, row: Any, given: tuple[Any, ...]) -> None:
        self._rows += 1
        if not self._rows % _OFTEN and self.run.stopped:
            raise TimeoutError
        if not isinstance(row, bool):
            self.model.add(row).only_enforce_if(*given)
        elif not row:
            self.model.add_bool_or([~literal for literal in given])

    def no_overlap(self, tasks: Sequence[tuple[Any, Any, Any, Any]]) -> None:
        self.model.add_no_overlap([self.model.new_optional_interval_var(*task, "") for task in tasks])

    def minimise(self, objective: Any, plan: Callable[[Callable[[Any], float]], Any]) -> None:
        self.model.minimize(objective)
        self._search(self.run, self.model, TICKS / self.unit, plan)


class _Milp:
    """Rows for PuLP: one that holds under a condition is let off, where that does not hold, all that it may exceed."""

    def __init__(self, run: Run, unit: float, minimise: Minimise) -> None:
        import pulp

        from .pulp_solvers import Model

        self._pulp, self._minimise, self._count = pulp, minimise, 0
        self.run, self.unit, self.lp = run, unit, Model("plain", lambda: run.stopped)
        self._first: dict[tuple[int, int], Any] = {}

    def _variable(self, most: float, category: str, name: str, index: tuple[int, ...]) -> Any:
        self._count += 1
        self.lp.names[f"x{self._count}"] = _called(name, index)
        return self._pulp.LpVariable(f"x{self._count}", 0, most, category)

    def letter(self, name: str) -> None:
        letter(self.lp, name)

    def binary(self, name: str, *index: int) -> Any:
        return self._variable(1, "Binary", name, index)

    def no(self, binary: Any) -> Any:
        return 1 - binary

    def count(self, most: int, name: str, *index: int) -> Any:
        return self._variable(most, "Integer", name, index)

    def implied(self, most: int, name: str, *index: int) -> Any:
        return self._variable(most, "Continuous", name, index)

    def amount(self, most: float, name: str, *index: int) -> Any:
        return self._variable(most * ABOVE_ONE, "Continuous", name, index)

    def defined(self, amount: Any, name: str, *index: int) -> Any:
        return amount

    def units(self, value: float, most: float = 1.0) -> float:
        return float(min(value / self.unit, CAP * most))

    def share(self, value: float) -> float:
        return float(min(value, CAP))

    def whole(self, size: int, of: int) -> float:
        return size / of

    def ratio(self, value: float) -> tuple[float, int]:
        return value, 1

    def sum(self, terms: Iterable[Any]) -> Any:
        return self._pulp.lpSum(terms)

    def row(self, left: Any, right: Any, *given: Any, slack: int = 0, over: float | None = None) -> None:
        row = self._pulp.LpAffineExpression(left) - right
        if over is None:
            over = row.constant + sum(max(0.0, factor * x.upBound) for x, factor in row.items())
        if over > 0:
            self.lp += row <= over * (len(given) - self._pulp.lpSum(given))

    def equal(self, left: Any, right: Any, *given: Any) -> None:
        if given:
            self.row(left, right, *given)
            self.row(right, left, *given)
        else:
            self.lp += self._pulp.LpAffineExpression(left) - right == 0

    def no_overlap(self, tasks: Sequence[tuple[Any, Any, Any, Any]]) -> None:
        for (u, one), (v, two) in combinations(enumerate(tasks), 2):
            if (u, v) not in self._first:
                self._first[u, v] = self.binary("y", u, v)
            first = self._first[u, v]
            for (*_, end, here), (start, _, _, there), turn in ((one, two, first), (two, one, 1 - first)):
                self.row(end, start, here, there, turn, over=ABOVE_ONE)

    def minimise(self, objective: Any, plan: Callable[[Callable[[Any], float]], Any]) -> None:
        self.lp.setObjective(self._pulp.lpSum(objective))
        self._minimise(self.run, self.lp, self.unit, lambda: plan(self._pulp.value))
