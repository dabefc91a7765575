"""One call for every problem: methods under one deadline, every plan verified."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from inspect import Parameter, signature
from math import isfinite, nextafter
from typing import TYPE_CHECKING, Any, Never, TypedDict, Unpack, overload

from gangplan.instances.addons import plugged
from gangplan.instances.arrays import plain, require_counts, require_number
from gangplan.instances.documents import content_hash
from gangplan.instances.errors import InstanceError, did_you_mean
from gangplan.instances.kinds import GRAPHS, PROBLEMS, with_objective
from gangplan.instances.verify import verify
from gangplan.solvers.processes import cores
from gangplan.solvers.result import Result, Status
from gangplan.solvers.run import OPTIMAL_GAP, Callback, Run

from .portfolio import run_methods
from .table import parts
from .witness import certified, prove

if TYPE_CHECKING:
    from gangplan.instances import (
        LatencyPlan,
        LatencyProblem,
        PartitionPlan,
        PartitionProblem,
        StagesPlan,
        StagesProblem,
        StepPlan,
        StepProblem,
    )
    from gangplan.instances.certificates.document import Proved
    from gangplan.instances.pipeline import PipelinePlan, PipelineProblem
    from gangplan.instances.placement import PlacementPlan, PlacementProblem
    from gangplan.instances.schedule import SchedulePlan, ScheduleProblem
    from gangplan.instances.verify import Answer

_HASHED = {"placement": 1.5e-5, "schedule": 1e-5}
"""Seconds that the hash takes for each part of a problem where that is not an entry of arrays."""
_ENTRY, _LATE = 3e-6, 0.1
"""Seconds that it takes for those, and may take when the time is up."""


class SolveOptions(TypedDict, total=False):
    """Keywords of `solve` that do not change what is solved."""

    method: str
    seed: int
    workers: int | None
    gap: float
    initial: Answer | None
    callbacks: Sequence[Callback]
    display: bool
    certify: bool


@overload
def solve(instance: PartitionProblem, time_limit: float, **options: Unpack[SolveOptions]) -> Result[PartitionPlan]: ...
@overload
def solve(instance: LatencyProblem, time_limit: float, **options: Unpack[SolveOptions]) -> Result[LatencyPlan]: ...
@overload
def solve(instance: StepProblem, time_limit: float, **options: Unpack[SolveOptions]) -> Result[StepPlan]: ...
@overload
def solve(instance: StagesProblem, time_limit: float, **options: Unpack[SolveOptions]) -> Result[StagesPlan]: ...
@overload
def solve(instance: PlacementProblem, time_limit: float, **options: Unpack[SolveOptions]) -> Result[PlacementPlan]: ...
@overload
def solve(instance: ScheduleProblem, time_limit: float, **options: Unpack[SolveOptions]) -> Result[SchedulePlan]: ...
@overload
def solve(instance: PipelineProblem, time_limit: float, **options: Unpack[SolveOptions]) -> Result[PipelinePlan]: ...
@overload
def solve(
    instance: Any, time_limit: float, *, objective: str | None = None, **options: Unpack[SolveOptions]
) -> Result[Any]: ...
def solve(
    instance: Any,
    time_limit: float,
    *unnamed: Never,
    objective: str | None = None,
    method: str = "auto",
    seed: int = 0,
    workers: int | None = None,
    gap: float = 0.0,
    initial: Answer | None = None,
    callbacks: Sequence[Callback] = (),
    display: bool = False,
    certify: bool = False,
    **unknown: Never,
) -> Result:
    """Solve `instance` within `time_limit` seconds, end to end, and say how good the answer is.

    Args:
        instance: what to solve.
        time_limit: seconds from this call; reading, model building and proof included.
        objective: instead of the instance's own: ``throughput`` (time per pass of a full pipeline), ``latency`` (time
            of one pass), ``step`` (makespan of one training step), ``stages`` (time per pass of the slowest of
            replicated stages). The plan then answers `with_objective(instance, objective)`.
        method: ``auto`` or one of `gangplan.methods()`.
        seed: of every random choice; one seed and one worker give the same trace.
        workers: threads, by default as many as this process may use cores.
        gap: stop once (objective - bound) / objective is at most this.
        initial: a plan to start from; times of a step's that no longer hold are mended.
        callbacks: called with the `Run` at every new plan or bound; returning true stops.
        display: log progress to stderr.
        certify: look for a certificate of the bound afterwards, for as long again at most: see `Result.standing`.
        unnamed, unknown: none; given, the error says what to write.

    Returns:
        The best verified plan, the best bound, and how they came about. Ctrl-C returns what there is.

    Raises:
        InstanceError: if an argument or `initial` does not fit the instance.
    """
    started = time.perf_counter()
    if unnamed or unknown:
        _refuse(unnamed, unknown)
    if certify and not plugged("certify"):
        raise InstanceError("certify", "needs the folder solvers/certificates, which is not installed")
    seed, workers = plain(seed), plain(workers) if workers is not None else cores()
    problem = _checked(instance, objective, time_limit, seed, workers, gap, callbacks)
    run = Run(problem, time_limit=time_limit, seed=seed, workers=workers, gap=gap, started=started)
    run.callbacks, log = callbacks, None
    if display:
        from .display import Display

        log = Display(run, method)
        run.callbacks = (log, *callbacks)
    proved, witnesses = None, tuple[str, ...]()
    try:
        if initial is not None:
            run.offer(_initial(run, initial), "initial")
        run_methods(run, method)
        if method == "auto" and run.stop_reason == "claimed":
            with run.phase("prove"):
                proved, witnesses = prove(run)
            if run.stop_reason is None and run.remaining() > 0:
                run_methods(run, method)  # a claim that is refuted costs its claimant the rest of the solve
        if run.infeasible:
            from .conflict import conflict

            run.conflict = conflict(run)
        if certify and proved is None and run.failure is None:
            proved = _certified(run, time_limit)
    except KeyboardInterrupt:
        run.stop_reason = "interrupted"
    if run.failure is not None:
        raise run.failure
    certificate = proved.as_fields() if proved is not None else {"certified": 0 if certify else None}
    result = _result(run, method, witnesses=witnesses, **certificate)
    if log:
        log.end(result)
    return result


def warm_up(*objectives: str, **options: Any) -> None:
    """Do nothing: nothing has to be compiled or loaded before a solve. It goes with the next release."""
    warnings.warn("warm_up does nothing: kernels are compiled when gangplan is built", DeprecationWarning, stacklevel=2)


def _refuse(unnamed: Sequence[object], unknown: Mapping[str, object]) -> None:
    """Raise because of arguments without a name, or with one that `solve` does not know, if there are any."""
    known = [name for name, x in signature(solve).parameters.items() if x.kind is Parameter.KEYWORD_ONLY]
    names = f"its options are {', '.join(known)}"
    if unnamed:
        raise InstanceError("solve", f"{unnamed[0]!r} has no name: write workers={unnamed[0]!r}, or another; {names}")
    for name, value in unknown.items():
        if name.rstrip("s") in ("device", "cluster", "memory", "bandwidth", "variant"):
            field = "devices" if name == "device" else name
            words = f"gangplan.generate(kind, {field}=...), gangplan.read(file, {field}=...)"
            raise InstanceError(name, f"{value!r} is said where the problem is made: {words}; of solve, {names}")
        raise InstanceError(name, f"{value!r} does not apply to solve{did_you_mean(name, known)}; {names}")


def _checked(
    instance: Any,
    objective: str | None,
    time_limit: float,
    seed: int,
    workers: int,
    gap: float,
    callbacks: Sequence[Callback],
) -> Any:
    """Return the problem with the objective that was asked for.

    Raises:
        InstanceError: naming the argument that does not fit.
    """
    own: Any = getattr(instance, "objective", None)
    if own not in PROBLEMS or not isinstance(instance, PROBLEMS[own]):
        hint = f"; write gangplan.read({str(instance)!r})" if isinstance(instance, str | os.PathLike) else ""
        raise InstanceError("instance", f"{type(instance).__name__} is no problem that gangplan knows{hint}")
    require_number(time_limit, "time_limit", positive=True)
    require_number(seed, "seed", whole=True, most=2**31 - 1)
    require_counts(workers=workers)
    require_number(gap, "gap", below=1)
    if not isinstance(callbacks, Sequence):
        raise InstanceError("callbacks", f"{callbacks!r} is not a sequence of functions")
    for i, callback in enumerate(callbacks):
        if not callable(callback):
            raise InstanceError(f"callbacks[{i}]", f"{callback!r} is not a function")
    if objective is not None and own in GRAPHS:
        return with_objective(instance, objective)
    if objective not in (None, own):
        raise InstanceError("objective", f"{objective!r} is not that of {type(instance).__name__}")
    return instance


def _initial(run: Run, initial: Any) -> Any:
    """Return the plan to start from, at other times where those of the problem have changed."""
    from gangplan.solvers.method import suite

    try:
        verdict = verify(run.problem, initial)
    except InstanceError as error:
        raise InstanceError("initial", error.problem) from None
    if verdict.ok:
        return initial
    of, plan, why = suite(run.problem.objective), None, verdict.violations[0]
    if of.repair is not None:
        with suppress(TimeoutError):
            plan = of.repair(of.prepare(run), initial)
    if plan is None or not verify(run.problem, plan).ok:
        raise InstanceError("initial", f"is not feasible: {why}")
    run.note(f"initial was made for other times ({why}): its devices and order are kept")
    return plan


def _certified(run: Run, seconds: float) -> Proved | None:
    """Return the best certificate that some seconds allow for, and have the run know what it proves."""
    with run.phase("certify"):
        proved = certified(run, seconds)
    if proved is not None and isfinite(proved.bound):
        run.raise_bound(nextafter(float(proved.bound), 0.0), proved.certificate.argument)
    elif proved is not None:
        run.prove_infeasible(proved.certificate.argument)
    return proved


def _result(run: Run, method: str, **proof: Any) -> Result:
    """Return what the run has come to."""
    # bounds are proved in floating point: never report one above a verified plan
    bound = run.bound if run.objective is None or run.bound is None else min(run.bound, run.objective)
    status = Status.UNKNOWN if run.plan is None else Status.FEASIBLE
    if run.infeasible:
        status = Status.INFEASIBLE
    elif run.gap is not None and run.gap <= OPTIMAL_GAP:
        status = Status.OPTIMAL
    plan, wall = _stamped(run), run.seconds()
    result = Result(
        status=status,
        stop_reason=run.stop_reason or ("time limit" if run.hurried else "methods exhausted"),
        plan=plan,
        objective=run.objective,
        bound=bound,
        trace=tuple(run.trace),
        phases={**run.phases, "other": max(0.0, wall - sum(run.phases.values()))},
        wall_seconds=wall,
        method=method,
        seed=run.seed,
        workers=run.workers,
        versions=dict(VERSIONS),
        turns=tuple(run.turns.values()),
        left_out=run.left_out,
        notes=tuple(run.notes),
        conflict=run.conflict,
        zero=run.zero,
        bound_by=run.bound_by,
        **proof,
    )
    is_proved = result.stop_reason == "claimed" and "claimed" not in result.standing
    return replace(result, stop_reason="proved") if is_proved else result


def _stamped(run: Run) -> Any:
    """Return the best plan with the hash of its problem, without where that would take long after the time is up."""
    seconds = parts(run.problem) * _HASHED.get(run.problem.objective, _ENTRY)
    if run.plan is None or seconds > run.remaining() + _LATE:
        return run.plan
    return replace(run.plan, instance=content_hash(run.problem))


def _version(name: str) -> str:
    with suppress(PackageNotFoundError):
        return version(name)
    return "not installed"


VERSIONS = {"python": platform.python_version()}
VERSIONS |= {name: _version(name) for name in ("gangplan", "numpy", "ortools", "highspy", "networkx")}
"""Of everything that can change a result; looked up beforehand, since that takes milliseconds."""
