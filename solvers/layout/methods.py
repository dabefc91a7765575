"""The registry: every method for layouts by its name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gangplan.instances.lazy import on_demand

from ..method import Method, Suite, plain_methods, without_plan
from ..run import Run

if TYPE_CHECKING:
    from . import plain, referee, rivals, search
else:
    globals().update(on_demand(__package__, "plain referee rivals search"))


def _prepare(run: Run) -> Any:
    from .space import Space

    return Space(run.problem)


METHODS: dict[str, Method] = {
    "branch": Method(search.branch, exact=True),
    "megatron_rule": Method(rivals.megatron_rule),
    "equal_layers": Method(rivals.equal_layers),
    "annealing": Method(rivals.annealing, draws=True),
    **plain_methods(plain, start=without_plan(search.dive)),
}
METHODS["cpsat"] = replace(METHODS["plain_cpsat"], start=METHODS["milp"].start)
SUITE = Suite(METHODS, ("",), _prepare, referee.optimum, referee.random_problem)
