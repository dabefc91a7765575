"""Contiguous pipelines by dynamic programming over all ideals, if they can be listed, and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...run import Run
from ..sizes import fits
from .bounds import counting_bound, impossible, load_ceiling
from .chain import best_chain, effort, groups_of
from .ideals import IdealOrder, all_ideals
from .quotient import Quotient

_FAMILY_BYTES = 4e8
"""What the bit matrix of a family may take."""
_IDEALS = 20_000, 200_000
"""More are not listed: with windows as wide as such orders have, other methods are faster. Between the two numbers it
is the time that says how many:"""
_IDEALS_A_SECOND = 15_000
"""for each second left, so that to list ideals in vain takes a tenth of it."""
_LISTING = 0.1
"""What listing may take of the time left: it is in vain for most large graphs."""
_BITS_A_SECOND = 3e7
"""How much of a family's bit matrix is made in a second, cautiously: nothing stops that."""
_PAIRS_A_SECOND = 2e7
"""How many pairs of ideals the recurrence gets through, cautiously."""
_MIXES = 4096
"""How many vectors c of devices used by type the recurrence goes through, where there are several types."""
_STATES = 1 << 25
"""Vectors c times groups, of types that are all needed, that the recurrence has memory for."""
_FAR = 1e3
"""A plan that is so many times better than the ceiling of a family's loads asks for a finer one."""


def pipeline(run: Run, q: Quotient, others: float = np.inf) -> None:
    """Solve exactly if the order has few enough ideals for the time there is.

    Args:
        run: the solve, of another variant perhaps.
        q: a contiguous quotient of its problem.
        others: seconds; no plan that is not a pipeline is better, and if there are none it is infinite.
    """
    if impossible(q) is not None:
        if others == np.inf:
            run.prove_infeasible("pipeline")
        return
    few = few_mixes(q)
    if few is None:
        run.note("too many mixes of device types that are all needed for the recurrence")
        return
    if few is not q:
        run.note(f"more than {_MIXES} mixes of device types: the recurrence leaves the slowest idle and proves nothing")
        return
    with run.phase("pipeline"):
        listed = min(_IDEALS[1], max(_IDEALS[0], _IDEALS_A_SECOND * run.remaining()))
        limit = int(min(listed, _FAMILY_BYTES / q.n_groups))
        with run.share(_LISTING):
            ideals = all_ideals(q, limit, lambda: run.stopped)
        small = ideals is not None and len(ideals) * q.n_groups < _BITS_A_SECOND * run.remaining()
        family = IdealOrder(q, ideals, _ceiling(run, q)) if ideals is not None and small else None
    if run.stopped:
        return
    if ideals is None:
        run.note("too many ideals for the full recurrence")
    elif family is None or effort(family, _ceiling(run, q)) > _PAIRS_A_SECOND * run.remaining():
        run.note("too little time for the full recurrence")
    else:
        with run.phase("pipeline"):
            _exact(run, q, family, others)


def few_mixes(q: Quotient) -> Quotient | None:
    """Return `q` with the slowest types that no group needs idle if vectors c are many; `None` if still too many."""
    few = q
    for t in np.argsort(q.speed, kind="stable"):
        if np.prod(few.counts + 1.0) <= _MIXES or np.count_nonzero(few.counts) <= 1:
            break
        fewer = replace(q, counts=np.where(np.arange(len(few.counts)) == t, 0, few.counts).astype(np.int32))
        few = few if impossible(fewer) else fewer
    mixes = np.prod(few.counts + 1.0)
    return None if mixes > _MIXES and mixes * q.n_groups > _STATES else few


def bounds(run: Run, own: Quotient, contiguous: Quotient | None) -> None:
    """Raise the bound by the least load of a device with any one group, for pipelines by what shares say."""
    if run.bound is None or run.stopped or not run.can_import("ortools"):
        return
    from .share_bound import share_bounds  # OR-Tools' flows take a while to import
    from .stage_bound import stage_bounds

    def stopped() -> bool:
        return run.stopped

    def raise_by(by: str, phase: str, values: Iterator[float]) -> None:
        with run.phase(phase):
            for value in values:
                run.raise_bound(value, by)

    raise_by("stages", "stage bound", stage_bounds(own, run.bound, stopped))
    if run.objective is None or run.stopped:
        return
    if contiguous is not None:
        raise_by("shares", "share bound", share_bounds(contiguous, run.bound, run.objective, stopped))


def _exact(run: Run, q: Quotient, family: IdealOrder, others: float) -> None:
    """Find the optimum: a threshold that no chain beats is a bound, the first that one beats gives the best chain."""
    floor = run.bound if run.bound is not None else counting_bound(q)
    ceiling = _ceiling(run, q)
    share = 0.1
    family.generous = True
    while not run.stopped:
        threshold = min(ceiling, floor + share * (ceiling - floor)) if share < 1 else ceiling
        try:
            found = best_chain(family, threshold, lambda: run.stopped)
        except TimeoutError:
            return
        if found is not None:
            plan = q.plan(groups_of(found[1], q.n_groups))
            if family.generous and not fits(run, plan):
                run.note("a stage is on the edge of what fits: the recurrence proves nothing")
                family.generous = False
                continue
            run.offer(plan, "pipeline")
            if run.objective is not None and family.ceiling > _FAR * run.objective:
                # loads were rounded by shares of that ceiling
                generous, ceiling = family.generous, run.objective
                family = IdealOrder(q, family.ideals, ceiling)
                family.generous = generous
                continue
            if family.generous:
                run.raise_bound(min(others, run.objective if run.objective is not None else found[0]), "pipeline")
            return
        if threshold < ceiling:
            if family.generous:
                run.raise_bound(min(others, threshold), "pipeline")
            share = min(1.0, 3 * share)
            continue
        if family.generous and run.objective is not None:
            run.raise_bound(min(others, run.objective), "pipeline")
        elif family.generous and others == np.inf:
            run.prove_infeasible("pipeline")
        return


def _ceiling(run: Run, q: Quotient) -> float:
    return run.objective if run.objective is not None else load_ceiling(q)
