"""What labelling needs to know of a problem: states, the actions in them, and a CP-SAT model from a state on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gangplan.solvers import Run

Value = Callable[[Any], int]
"""Gives the value of a variable or literal in a solution."""
Action = tuple[int, int]
"""(decision, what is done), e.g. (group of ops, device); each problem's file says what they are."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What a policy has decided so far: the first `depth` decisions of `plan`, in the order of the problem's space.

    Attributes:
        plan: any feasible plan; what it does later only says that the state can be completed, and how well.
        depth: 0 is the empty state.
    """

    plan: Any
    depth: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """The CP-SAT model of all completions of a state.

    Attributes:
        model: with an objective or without.
        total: an expression: `units` times the objective less `constant`, rounded down.
        units, constant: see above.
        literal: implies its action; an action without one cannot be taken.
        plan: makes a plan of a solution, `None` if that holds only within the rounding of the model.
    """

    model: Any
    total: Any
    units: float
    constant: float
    literal: Mapping[Action, Any]
    plan: Callable[[Value], Any]


class Space(Protocol):
    """A problem as a sequence of decisions.

    Attributes:
        problem: which one.
        methods: what solves it, in this order, by the names of its suite.
    """

    problem: Any
    methods: tuple[str, ...]

    def depth(self, plan: Any) -> int:
        """Return of how many decisions `plan` consists."""

    def key(self, state: State) -> Hashable:
        """Return what tells `state` from others of the problem."""

    def actions(self, state: State, whole: bool) -> dict[Action, Action]:
        """Return the actions in `state`, each with one that is the same but for names; many may have the same.

        Args:
            state: where we are.
            whole: whether every decision that is still open counts, or only the next one.
        """

    def taken(self, state: State, plan: Any) -> set[Action]:
        """Return the actions that `plan` takes, which agrees with `state` as far as that goes, but for names."""

    def formulate(self, state: State, actions: set[Action], ceiling: float) -> Formula:
        """Return the model of the completions of `state` that cost at most `ceiling`."""

    def solver(self, run: Run) -> Any:
        """Return a solver for what is left of `run`."""
