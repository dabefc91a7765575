"""The contract of a method, as a test anyone can run: `check_solver` on tiny problems whose optimum is known."""

from __future__ import annotations

from contextlib import suppress

from gangplan.instances import GraphProblem, verify
from gangplan.instances.arrays import require_kind

from .method import Method, Suite, suite
from .run import OPTIMAL_GAP, Callback, Run

_LIMIT = 60.0


def check_solver(method: Method, objective: str = "throughput", *, problems: int = 12) -> None:
    """Run `method` on tiny problems of all its variants and compare with the optimum found by enumeration.

    Problems that do not suit the method are passed over. Checked: every plan passes the verifier; no plan is better
    than the optimum and no bound above it; only problems without a plan are called infeasible; an exact method proves
    its answer; one seed and one worker give the same trace twice; a run that is told to stop, or has no time, gets no
    further plan.
    """
    require_kind(method, "method", (Method,))
    tools = suite(objective)
    for variant in tools.variants_of(method):
        checked = 0
        for seed in range(problems):
            problem = tools.random_problem(seed, variant)
            run = Run(problem, time_limit=_LIMIT)
            prepared = tools.prepare(run)
            if run.infeasible or method.suits(prepared):
                _check(tools, method, problem, f"{variant or objective}, random_problem({seed})")
                checked += 1
        assert checked, f"{variant or objective}: none of {problems} problems suits the method"


def _check(tools: Suite, method: Method, problem: GraphProblem, where: str) -> None:
    run, best = _run(tools, method, problem), tools.optimum(problem)
    if run.plan is not None:
        assert verify(problem, run.plan).objective == run.objective, f"{where}: the plan was changed after the offer"
    if best is None:
        assert run.plan is None, f"{where}: there is no plan, but the verifier passed one"
    else:
        slack = OPTIMAL_GAP * best
        assert not run.infeasible, f"{where}: called infeasible, but the optimum is {best:.9g}"
        assert run.objective is None or run.objective >= best - slack, f"{where}: {run.objective} is below {best:.9g}"
        assert run.bound is None or run.bound <= best + slack, f"{where}: bound {run.bound} is above {best:.9g}"
    if method.exact:
        proved = run.infeasible or (run.gap is not None and run.gap <= OPTIMAL_GAP)
        assert proved, f"{where}: exact, but left {run.objective} with bound {run.bound}; the optimum is {best}"
    again = _run(tools, method, problem)
    assert _trace(run) == _trace(again), f"{where}: two runs with one seed differ: {_trace(run)} and {_trace(again)}"
    stopped = _run(tools, method, problem, lambda run: True)
    assert len(stopped.trace) <= 1, f"{where}: {len(stopped.trace)} plans, though the first was to be the last"
    late = Run(problem, time_limit=_LIMIT)
    prepared, made = tools.prepare(late), len(late.trace)
    late.deadline = late.started
    if not late.infeasible:
        with suppress(TimeoutError):
            method.run(late, prepared)
    assert len(late.trace) == made, f"{where}: a plan without any time left"


def _run(tools: Suite, method: Method, problem: GraphProblem, callback: Callback = lambda run: None) -> Run:
    run = Run(problem, time_limit=_LIMIT, callbacks=(callback,))
    try:
        prepared = tools.prepare(run)
    except TimeoutError:
        # without any time the method itself is to be seen stopping
        prepared = tools.prepare(Run(problem, time_limit=_LIMIT))
    if not run.infeasible:
        with suppress(TimeoutError):
            method.run(run, prepared)
    return run


def _trace(run: Run) -> list[tuple[float, str]]:
    return [(found.objective, found.by) for found in run.trace]
