"""Which method runs when."""

from __future__ import annotations

from gangplan.instances import InstanceError
from gangplan.solvers import Run
from gangplan.solvers.partition.bounds import counting_bound, impossible
from gangplan.solvers.partition.methods import METHODS, Reduced

_SHARE = 0.6
"""What a method may take of the time left while others wait."""
_SUITED = {
    "contiguous": ["greedy", "pipeline", "cpsat", "neighbourhood"],
    "convex": ["greedy", "convex", "local_search", "cpsat"],
    # a good pipeline is a good start for every variant
    "free": ["greedy", "pipedream", "local_search", "cpsat"],
}


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    names = _choose(run, method)
    with run.phase("prepare"):
        reduced = Reduced(run.problem)
        reason = impossible(reduced.own)
        if reason is not None:
            run.note(reason)
            run.prove_infeasible()
            return
        run.raise_bound(counting_bound(reduced.own), "counting")
    for name in [name for name in names if not METHODS[name].suits(reduced.own)]:
        run.note(f"{name} left out: its model would be too large")
        names.remove(name)
    for i, name in enumerate(names):
        if run.stopped:
            return
        with run.phase(name), run.share(1.0 if i == len(names) - 1 else _SHARE):
            METHODS[name].run(run, reduced)


def _choose(run: Run, method: str) -> list[str]:
    variant = run.problem.variant
    if method == "auto":
        return list(_SUITED[variant])
    if not isinstance(method, str) or method not in METHODS:
        raise InstanceError("method", f"{method!r} is not one of auto, {', '.join(METHODS)}")
    if variant not in METHODS[method].variants:
        raise InstanceError("method", f"{method!r} does not solve the variant {variant!r}")
    return [method]
