"""Make a proof of a claim: a checked certificate, or witnesses that share nothing, one on the textbook model."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from gangplan.instances.addons import offered, plugged
from gangplan.solvers.method import suite
from gangplan.solvers.run import OPTIMAL_GAP, Run

from .portfolio import run_methods
from .table import named, own, parts

if TYPE_CHECKING:
    from gangplan.instances.certificates.document import Proved

SHARE = 0.5
"""Share of the limit that proving an optimum may take, if there is so much left."""
_CERTIFICATE, _MOST, _CELLS = 0.25, 0.75, 200
"""Share of that which a certificate may take beside a textbook model; of more cells, ops times devices, most of it."""
LEAST, AS_LONG = 10.0, 2.0
"""Seconds that it may take however fast the claim was, and else how many times as long as the claim took."""
ZERO = "zero"
"""Witness that no cost is negative."""
_FEW, _QUICK = 100, 0.02
"""Parts up to which many certificates take milliseconds, and seconds for those in this process.

Those of placements and layouts are made in another."""
_TINY = 6
"""Parts up to which all plans can be looked at."""
_IMPORT = 0.5
"""Seconds with which makers of certificates, and what they ask for, are imported if they are not loaded."""
_WORTH = 0.005
"""Seconds with which something can be found out."""
_FIRST = 0.6
"""Share that a first textbook solver may take of the time, if there is a second."""

CPSAT, HIGHS = "CP-SAT", "HiGHS"
TEXTBOOK = {"plain_cpsat": CPSAT, "plain_milp": HIGHS}
"""Methods that work on the problem as its page states it, each with one solver."""
SOLVERS = {
    "cpsat": {CPSAT}, "chain": {CPSAT}, "patterns": {CPSAT, HIGHS}, "columns": {HIGHS},
    "bounds": {HIGHS}, "milp": {HIGHS}, **{name: {solver} for name, solver in TEXTBOOK.items()},
}  # fmt: skip
"""Solvers that claimants have used; others that come with gangplan are arguments and searches of its own."""


def prove(run: Run) -> tuple[Proved | None, tuple[str, ...]]:
    """Return a certificate that settles a claim, else its witnesses; neither if there is none in the time given.

    An optimum has `SHARE` of the limit, at most `AS_LONG` times what the claim took or `LEAST`. That there is no plan
    has all that is left if it is a solver's word. A plan that refutes the claim is offered to the run.
    """
    left, limit = run.remaining(), run.deadline - run.started
    if not (run.infeasible and _solvers(run)):
        left = min(left, SHARE * limit, max(LEAST, AS_LONG * run.seconds()))
    end = time.perf_counter() + left
    if run.objective is not None and 0 <= run.objective <= run.zero:
        return None, (ZERO,)
    if left < _WORTH:
        return None, ()
    found = _certificate(run, left * (_CERTIFICATE if _cells(run.problem) <= _CELLS else _MOST))
    return (found, ()) if found else (None, _witnesses(run, end))


def certified(run: Run, seconds: float) -> Proved | None:
    """Return the best certificate that some seconds allow for, made in a process."""
    alone = _alone(run, seconds)
    with _noted(run, "certificate"):
        run_methods(alone, "certificate")
    found: Proved | None = alone.proof
    return found


def certificate(run: Run, prepared: Any) -> None:
    """Make certificates of bounds: a method for `run_methods`."""
    offered("certify")(run, run.remaining())


def enumeration(run: Run, prepared: Any) -> None:
    """Look at every plan of a tiny problem: a method for `run_methods`."""
    with suppress(NotImplementedError):
        least = suite(run.problem.objective).optimum(run.problem)
        if least is None:
            run.prove_infeasible("enumeration")
        else:
            run.raise_bound(least, "enumeration")


def _alone(run: Run, seconds: float) -> Run:
    """Return a run of its own for a witness, who knows no more than the plan."""
    alone = Run(run.problem, time_limit=seconds, seed=run.seed, workers=run.workers, bare=True)
    if run.objective is not None:
        alone.keep(run.plan, run.objective, "plan")
    return alone


@contextmanager
def _noted(run: Run, what: str) -> Iterator[None]:
    """Leave a note where a block fails."""
    try:
        yield
    except Exception as error:
        run.note(f"no {what}: {type(error).__name__}: {error}")


def _certificate(run: Run, seconds: float) -> Proved | None:
    """Return a certificate of the claim itself: of few parts made here if that takes milliseconds."""
    home = next(iter(plugged("certify").values()), "")
    loaded = home.partition(":")[0] in sys.modules
    if not home or (not loaded and seconds < _IMPORT):
        return None
    from gangplan.instances.certificates import certifies

    found: Proved | None = None
    end = time.perf_counter() + seconds
    if run.problem.objective not in ("placement", "layout") and parts(run.problem) <= _FEW:
        with _noted(run, "certificate"):
            found = offered("certify")(_alone(run, seconds), min(_QUICK if loaded else _IMPORT, seconds))
    if not (found and certifies(found.bound, run.objective, run.zero)):
        found = certified(run, end - time.perf_counter())
    return found if found and certifies(found.bound, run.objective, run.zero) else None


def _solvers(run: Run) -> set[str]:
    """Return the solvers that have a part in the claim; of a stranger's method nobody knows."""
    objective = run.problem.objective
    strangers = named(objective).keys() - own(objective).keys()
    return set[str]().union(*({CPSAT, HIGHS} if x in strangers else SOLVERS.get(x, set()) for x in run.claimants))


def _cells(problem: Any) -> int:
    """Return ops times devices, jobs times nodes, jobs, passes, or pairs of ops: textbook models grow with these."""
    if problem.objective in ("placement", "schedule"):
        return len(problem.jobs) * int(problem.fleet.n_nodes if problem.objective == "placement" else 1)
    if problem.objective == "layout":  # few are small enough for a textbook model
        return parts(problem) * _CELLS
    if problem.objective == "pipeline":
        return int(problem.n_passes)
    each = problem.graph.n_ops if problem.objective == "step" else problem.cluster.n_devices
    return int(problem.graph.n_ops * each)


def _witnesses(run: Run, end: float) -> tuple[str, ...]:
    """Return the claimant and who confirms it: a textbook solver, or two without the claimant, or an enumeration."""
    methods, used = named(run.problem.objective), _solvers(run)
    bare = suite(run.problem.objective).prepared(Run(run.problem, time_limit=SHARE, bare=True))
    able = [x for x in TEXTBOOK if x in methods and methods[x].installed and methods[x].suits(bare)]
    free = [x for x in able if TEXTBOOK[x] not in used]
    agreed = list[str]()
    for i, name in enumerate(free or able):
        seconds = (end - time.perf_counter()) * (_FIRST if free and i + 1 < len(free) else 1.0)
        if seconds >= _WORTH and run.stop_reason == "claimed" and _agrees(run, name, seconds):
            agreed.append(name)
            if free:
                return run.bound_by, name
    if len(agreed) > 1:
        return tuple(agreed)
    left = end - time.perf_counter()
    tiny = left >= _WORTH and run.stop_reason == "claimed" and parts(run.problem) <= _TINY
    return (run.bound_by, "enumeration") if tiny and _agrees(run, "enumeration", left) else ()


def _agrees(run: Run, name: str, seconds: float) -> bool:
    """Return whether a method comes to the same on its own, with no more than the plan; offer what it finds."""
    own = _alone(run, seconds)
    with _noted(run, f"word of {name}"):
        run_methods(own, name)
    if own.plan is not None and own.plan is not run.plan:
        run.offer(own.plan, name)
        if run.stop_reason is None and own.bound is not None:
            run.raise_bound(own.bound, name)
            return False
    return own.infeasible if run.plan is None else own.gap is not None and own.gap <= OPTIMAL_GAP
