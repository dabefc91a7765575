"""Make a proof of a claim: a checked certificate, or witnesses that share nothing, one on the textbook model."""

from __future__ import annotations

import sys
import time
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from gangplan.instances.addons import plugged
from gangplan.solvers.method import suite
from gangplan.solvers.processes import can_fork, forked
from gangplan.solvers.run import OPTIMAL_GAP, Run

from .portfolio import run_methods
from .table import installed, named, own, parts

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
"""Seconds with which makers of certificates are imported if they are not loaded."""
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


def _certificate(run: Run, seconds: float) -> Proved | None:
    """Return a certificate of the claim itself, made in a process that can be stopped if the system has one."""
    home = next(iter(plugged("certify").values()), None)
    if home is None or (home.partition(":")[0] not in sys.modules and seconds < _IMPORT):
        return None
    from gangplan.instances.certificates import certifies

    certify = resolve_name(home)
    end = time.perf_counter() + seconds
    found: Proved | None = None
    try:
        if run.problem.objective not in ("placement", "layout") and parts(run.problem) <= _FEW:
            found = certify(run, min(_QUICK, seconds))
        if not (found and certifies(found.bound, run.objective, run.zero)) and can_fork():
            left = end - time.perf_counter()
            found = forked(lambda: certify(run, left), lambda: time.perf_counter() > end)
    except Exception as error:
        run.note(f"no certificate: {type(error).__name__}: {error}")
        return None
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
    able = [x for x in TEXTBOOK if x in methods and installed(methods[x]) and methods[x].suits(bare)]
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
    return (run.bound_by, "enumeration") if left >= _WORTH and _enumerated(run, left) else ()


def _enumerated(run: Run, seconds: float) -> bool:
    """Return whether looking at every plan of a tiny problem comes to the same."""
    problem, end = run.problem, time.perf_counter() + seconds
    if run.stop_reason != "claimed" or parts(problem) > _TINY or not can_fork():
        return False
    try:
        found = forked(lambda: (suite(problem.objective).optimum(problem),), lambda: time.perf_counter() > end)
    except Exception:  # what is not enumerated
        return False
    if found is None or found[0] is None or run.objective is None:
        return found is not None and found[0] is None and run.objective is None
    return run.objective - found[0] <= OPTIMAL_GAP * abs(found[0] - run.zero)


def _agrees(run: Run, name: str, seconds: float) -> bool:
    """Return whether a method comes to the same on its own, with no more than the plan; offer what it finds."""
    own = Run(run.problem, time_limit=seconds, seed=run.seed, workers=run.workers, bare=True)
    if run.plan is not None:
        own.offer(run.plan, "plan")
    run_methods(own, name)
    if own.plan is not None and own.plan is not run.plan:
        run.offer(own.plan, name)
        if run.stop_reason is None and own.bound is not None:
            run.raise_bound(own.bound, name)
            return False
    return own.infeasible if run.plan is None else own.gap is not None and own.gap <= OPTIMAL_GAP
