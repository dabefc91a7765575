"""The registry: every method for layouts by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gangplan.instances.lazy import on_demand

from ..method import Method, Suite
from ..run import Run
from .prepare import PreparedLayout
from .split import Splitter

if TYPE_CHECKING:
    from . import search
else:
    (search,) = on_demand(__package__, "search")


def _prepare(run: Run) -> PreparedLayout:
    return PreparedLayout(run.problem, Splitter(run.problem))


def _optimum(problem: Any) -> float | None:
    raise NotImplementedError


def _random(seed: int, variant: str) -> Any:
    raise NotImplementedError


METHODS: dict[str, Method] = {"branch": Method(search.branch, exact=True)}
SUITE = Suite(METHODS, ("",), _prepare, _optimum, _random)
