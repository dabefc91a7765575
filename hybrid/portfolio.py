"""Which method runs when."""

from __future__ import annotations

from gangplan.instances import InstanceError
from gangplan.instances.verify import Problem
from gangplan.solvers import Run
from gangplan.solvers.method import Suite, suite_of

_SHARE = 0.6
"""What a method may take of the time left while others wait."""
_SHARES = {
    ("schedule", "local_search"): 0.1,
    ("schedule", "starts"): 0.7,
    ("placement", "local_search"): 0.1,
    ("placement", "patterns"): 0.9,
    ("step", "cpsat"): 0.25,
    ("step", "local_search"): 0.1,
    ("step", "lns"): 0.3,
}
"""The same where it is not `_SHARE`, by objective and method."""
_SUITED = {
    ("throughput", "contiguous"): ["greedy", "pipeline", "cpsat", "neighbourhood"],
    ("throughput", "convex"): ["greedy", "convex", "local_search", "cpsat"],
    # a good pipeline is a good start for every variant
    ("throughput", "free"): ["greedy", "pipedream", "local_search", "cpsat"],
    ("latency", ""): ["greedy", "chain", "local_search", "cpsat", "neighbourhood"],
    ("stages", ""): ["ideals", "chain"],
    # a short CP-SAT proves most; the long one starts from what the searches have found
    ("step", ""): [
        *("heft", "bounds", "list_schedule", "contiguous", "critical_path"),
        *("cpsat", "local_search", "lns", "cpsat_below"),
    ],
    ("schedule", ""): ["lists", "starts", "local_search", "cpsat"],
    ("placement", ""): ["local_search", "patterns", "cpsat"],
}


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    tools = suite_of(run.problem)
    names = _choose(run, tools, method)
    with run.phase("prepare"):
        prepared = tools.prepare(run)
    if run.infeasible:
        return
    for name in [name for name in names if not tools.methods[name].suits(prepared)]:
        run.note(f"{name} left out: it does not model all of the problem, or its model would be too large")
        names.remove(name)
    for i, name in enumerate(names):
        if run.stopped:
            return
        share = _SHARES.get((run.problem.objective, name), _SHARE)
        with run.phase(name), run.share(1.0 if i == len(names) - 1 else share):
            tools.methods[name].run(run, prepared)


def suited(problem: Problem) -> list[str]:
    """Return the methods that suit `problem`, in the order in which they run."""
    return list(_SUITED[problem.objective, problem.variant])


def _choose(run: Run, tools: Suite, method: str) -> list[str]:
    variant = run.problem.variant
    if method == "auto":
        return suited(run.problem)
    if not isinstance(method, str) or method not in tools.methods:
        raise InstanceError("method", f"{method!r} is not one of auto, {', '.join(tools.methods)}")
    if variant not in tools.variants_of(tools.methods[method]):
        raise InstanceError("method", f"{method!r} does not solve the variant {variant!r}")
    return [method]
