"""Contiguous pipelines by dynamic programming on ideals: a first chain, all ideals if they can be listed, else neighbourhoods."""

from __future__ import annotations

import numpy as np

from ..run import Run
from .bounds import counting_bound
from .chain import Chain, Family, groups_of
from .cut_bound import cut_bound
from .lattice import all_ideals, linear_extension, prefixes
from .neighbourhood import Neighbourhood
from .quotient import Quotient

_ORDERS = 8
_FAMILY_BYTES = 4e8
"""What the bit matrix of a family may take; it bounds how many ideals are listed."""
_AROUND = 400
_AROUND_MOST = 6400
_STALLED = 8


def pipedream(run: Run, q: Quotient) -> None:
    """Offer the best pipeline along one linear extension (PipeDream's dynamic programme, SOSP 2019, without replication)."""
    _search(run, q, Family(q, list(prefixes(linear_extension(q)))), "pipedream")


def pipeline(run: Run, q: Quotient) -> None:
    """Solve exactly if the order has few enough ideals; else search neighbourhoods and bound by cuts."""
    chain = _first_chain(run, q)
    if run.stopped:
        return
    limit = int(_FAMILY_BYTES / q.n_groups)
    with run.phase("ideals"):
        ideals = all_ideals(q, limit, lambda: run.stopped)
    if ideals is not None:
        with run.phase("chain"):
            _exact(run, q, Family(q, ideals))
    elif chain is not None and not run.stopped:
        run.note(f"more than {limit} ideals: neighbourhoods and a cut bound instead of the full recurrence")
        _approximate(run, q, chain)


def _first_chain(run: Run, q: Quotient) -> Chain | None:
    rng = np.random.default_rng(run.seed)
    family = set(prefixes(linear_extension(q)))
    for _ in range(_ORDERS - 1):
        family.update(prefixes(linear_extension(q, rng)))
    with run.phase("chain"):
        return _search(run, q, Family(q, list(family)), "chain")


def _search(run: Run, q: Quotient, family: Family, by: str) -> Chain | None:
    """Offer the best chain of a family that is not all ideals; thresholds widen until there is one."""
    floor = counting_bound(q)
    ceiling = load_ceiling(q)
    threshold = floor * 1.02
    while not run.stopped:
        threshold = min(threshold, ceiling)
        try:
            found = family.best_chain(threshold, lambda: run.stopped)
        except TimeoutError:
            return None
        if found is not None:
            run.offer(q.plan(groups_of(found[1], q.n_groups)), by)
            return found[1]
        if threshold >= ceiling:
            return None
        threshold = floor + 2 * (threshold - floor) + 1e-9 * ceiling
    return None


def _exact(run: Run, q: Quotient, family: Family) -> None:
    """Find the optimum: each threshold that no chain beats is a bound, the first that one beats gives the best chain."""
    floor = run.bound if run.bound is not None else counting_bound(q)
    ceiling = run.objective if run.objective is not None else load_ceiling(q)
    share = 0.1
    while not run.stopped:
        threshold = min(ceiling, floor + share * (ceiling - floor))
        try:
            found = family.best_chain(threshold, lambda: run.stopped)
        except TimeoutError:
            return
        if found is not None:
            run.offer(q.plan(groups_of(found[1], q.n_groups)), "chain")
            run.raise_bound(run.objective if run.objective is not None else found[0], "chain")
        elif threshold < ceiling:
            run.raise_bound(threshold, "chain")
            share = min(1.0, 3 * share)
        elif run.objective is not None:
            run.raise_bound(run.objective, "chain")
        else:
            run.prove_infeasible()


def _approximate(run: Run, q: Quotient, chain: Chain) -> None:
    """Search larger and larger neighbourhoods until they stop paying; bound by cuts at each new best chain."""
    rng = np.random.default_rng(run.seed)
    walk = Neighbourhood(q, rng)
    around, stalled = _AROUND, 0
    while not run.stopped and run.objective is not None and around <= _AROUND_MOST:
        with run.phase("neighbourhood"):
            reach = run.objective * float(rng.choice([0.03, 0.1, 0.3]))
            family = {0, (1 << q.n_groups) - 1}
            for _, ideal in chain:
                if run.stopped:
                    return
                family.update(walk.around(ideal, around, reach))
            try:
                found = Family(q, list(family)).best_chain(run.objective, lambda: run.stopped)
            except TimeoutError:
                return
        stalled = 0 if found is not None else stalled + 1
        if found is not None:
            chain = found[1]
            run.offer(q.plan(groups_of(chain, q.n_groups)), "neighbourhood")
            with run.phase("cut bound"):
                run.raise_bound(cut_bound(q, run.objective, lambda: run.stopped), "cuts")
        elif stalled == _STALLED:
            around, stalled = 2 * around, 0


def load_ceiling(q: Quotient) -> float:
    """Return a load that no device can exceed, seconds."""
    finite = np.where(np.isfinite(q.time), q.time, 0.0)
    return float(finite.max(axis=0).sum() + sum(cost for _, cost in q.nets)) * 1.01 + 1e-12
