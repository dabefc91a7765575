"""The policy as a method of the solvers: greedy first, then samples, for as long as there is time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gangplan.instances import InstanceError
from gangplan.solvers import Run
from gangplan.solvers.partition.throughput.bounds import impossible
from gangplan.solvers.partition.throughput.dominate import dominate
from gangplan.solvers.partition.throughput.pipeline import few_mixes
from gangplan.solvers.partition.throughput.quotient import Quotient, quotient

WEIGHTS = "throughput"
BATCH, BATCHES = 16, 8
"""Samples at a time, and how many times at most."""


def learned(run: Run, prepared: Any) -> None:
    """Offer the plan of the shipped weights, then the best of ever more samples; see `Method.run`."""
    q = prepared.pipeline
    if impossible(q) is not None or run.stopped or not run.can_import("torch"):
        return
    with run.phase("import"):
        policy = _policy()
    if isinstance(policy, str):
        run.note(f"learned left out: {policy}")
    elif not run.stopped:
        with run.phase("learned"):
            _plan(run, q, policy)


def kernels() -> tuple[Any, ...]:
    """Return what is compiled, see `Method.kernels`."""
    from gangplan.solvers.partition.throughput.cuts import cut, numbered
    from gangplan.solvers.partition.throughput.orders import extend
    from gangplan.solvers.partition.throughput.polish import improve

    return cut, improve, extend, numbered


def warm() -> None:
    """Load weights and compiled code, so that no deadline pays for it."""
    from gangplan.instances.generators.families import make

    from .decode import Decoder
    from .drafts import greedy

    problem: Any = make("throughput", "fork_join", 0, 12)
    policy = _policy()
    if not isinstance(policy, str):
        made = Decoder(few_mixes(dominate(quotient(problem))))
        greedy(made, policy.scores(made))


def _plan(run: Run, q: Quotient, policy: Any) -> None:
    from .decode import Decoder
    from .drafts import greedy, rows

    made = Decoder(few_mixes(q))
    try:
        heads = policy.scores(made)
    except InstanceError as error:
        run.note(f"learned left out: {error}")
        return
    # PipeDream's plan is there before the scores are
    first = made.base if run.stopped else greedy(made, heads)
    drafts = [first] if first is not None else []
    _offer(run, made, drafts)
    for i in range(BATCHES):
        for row in rows(heads, heads.shape[1] + 1 + BATCH, seed=run.seed + i)[heads.shape[1] + 1 :]:
            if run.stopped:
                return
            draft = made.decode(row)
            drafts += [draft] if draft is not None else []
        drafts = sorted(drafts, key=lambda x: x.load)[:BATCH]
        _offer(run, made, drafts)
        if not run.stopped and (joined := made.join(drafts)) is not None:
            drafts.insert(0, joined)
            _offer(run, made, drafts)


def _offer(run: Run, made: Any, drafts: list[Any]) -> None:
    # a plan a millisecond late is better than none
    if not drafts or (run.stopped and run.plan is not None):
        return
    best = min(drafts, key=lambda x: x.load)
    if run.objective is None or best.load < run.objective * (1 - 1e-9):
        run.offer(made.plan(best), "learned")


@lru_cache(maxsize=1)
def _policy() -> Any:
    """Return the shipped policy, or why there is none."""
    try:
        from ..policy.weights import find
        from .policy import ThroughputPolicy

        return ThroughputPolicy.load(find(WEIGHTS))
    except ImportError as error:
        return f'{error.name or error} is not installed: pip install "gangplan[learn]"'
    except InstanceError as error:
        return str(error)
