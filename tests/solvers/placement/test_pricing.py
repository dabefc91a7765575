"""The compiled search for patterns says to the bit what numba's said before it, and what it says as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Fleet, GangJob, PlacementProblem
from gangplan.solvers import Run, native
from gangplan.solvers.placement import options, pricing
from gangplan.solvers.placement.options import Options, Pricing, families, options_of, relaxed_options
from gangplan.solvers.placement.prepare import PreparedBatch

from ..uncompiled import uncompiled

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernel of commit 2c4fd7fc made of `problems`."""
DEEPEST = 32
"""Jobs of a pattern at most."""
KINDS: list[dict[str, Any]] = [
    {}, {"collective": "ps"}, {"collective": "hierarchical", "whole_nodes": 0.5}, {"gpu_types": "A100,V100"},
    {"selectors": 0.4, "apart": 0.4}, {"optional": 0.3}, {"sizes": "1:8,2:2"}, {"shares": 0.5, "menus": 0.4},
]  # fmt: skip


def problems() -> Iterator[tuple[str, PlacementProblem]]:
    """Yield problems by name: what gangs may ask for, of few and of more jobs."""
    for i, kind in enumerate(KINDS):
        for jobs in (6, 16, 60):
            yield f"{i} of {jobs}", gangs(jobs=jobs, racks=2, nodes=max(2, jobs // 4), load=0.9, seed=i, **kind)


def priced(problem: PlacementProblem, steps: int = 20_000) -> list[str]:
    """Return the patterns of each kind of node that cost less than random prices: how many, if all, and a digest."""
    batch, found, rng = PreparedBatch(problem), list[str](), np.random.default_rng(0)
    kin = families(batch)
    many, never = np.array([len(jobs) for jobs in kin.members]), np.zeros(kin.apart.shape, dtype=bool)
    for kind in range(len(batch.sample)):
        some, relaxed = options_of(batch, kin, kind), relaxed_options(batch, kin.members, kind)
        for apart, every in ((kin.apart, some), (never, relaxed)):
            found += _priced(batch, partial(Pricing, batch, many, apart), every, rng, steps)
    return found


def _priced(
    batch: PreparedBatch, search: Callable[[Options], Pricing], every: Options, rng: np.random.Generator, steps: int
) -> Iterator[str]:
    run, alone = Run(batch.problem, time_limit=600.0), every.cost(slice(None))
    for level, most, keep_best in ((0.9, 40, True), (1.1, 3000, False), (1.3, 20, True), (1.6, 200, False)):
        pays = alone * level * rng.uniform(0.7, 1.3, len(alone))
        kept = np.flatnonzero(rng.random(len(alone)) < 0.8) if keep_best else np.arange(len(alone))
        columns = {x.name: getattr(every, x.name)[kept] for x in fields(every) if x.name != "room"}
        some = search(replace(every, **columns))
        reduced, cost, chosen, complete = some.search(run, pays[kept], -1e-6, most, keep_best, steps)
        chosen = np.where(chosen >= 0, kept[chosen], -1) if len(kept) else chosen
        text = repr((reduced.tolist(), cost.tolist(), chosen.tolist()))
        yield f"{len(cost)} {complete} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


@pytest.mark.parametrize(("name", "problem"), [*problems()])
def test_patterns_are_those_recorded(name: str, problem: PlacementProblem) -> None:
    """Few and many patterns, all or the best, of all options or some, are to the bit what numba's kernel found."""
    assert priced(problem) == json.loads(GOLDEN.read_text())[name]


@pytest.mark.parametrize("name", ["0 of 6", "2 of 6", "7 of 6"])
def test_the_source_does_what_is_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from the source as plain Python the search finds the same patterns."""
    problem = dict(problems())[name]
    compiled, source = priced(problem, 300), uncompiled(native, pricing)
    for part in ("PricedKind", "PricingSearch", "search"):
        monkeypatch.setattr(options, part, getattr(source, part))
    assert priced(problem, 300) == compiled


def test_arrays_of_another_shape_are_refused() -> None:
    """What does not fit is not read or written beyond its end, and neither is an option of no family or model."""
    table, marks, many = np.zeros((7, 3)), np.zeros((6, 3), np.int64), np.ones(1, np.int64)
    rest = (np.zeros((2, 2)), np.zeros((1, 1), bool), many, np.zeros(3))
    kind, work, over = pricing.PricedKind(table, marks, *rest), pricing.PricingSearch(3, 1, 2), np.zeros(1, np.uint8)
    for call in (
        lambda: pricing.PricedKind(table, marks[:, :2].copy(), *rest),
        lambda: pricing.PricedKind(table, marks + 1, *rest),
        lambda: pricing.PricedKind(table, marks - 1, *rest),
        lambda: pricing.search(kind, work, np.zeros(2), 0.0, 1, True, 1, over),
        lambda: pricing.search(kind, pricing.PricingSearch(2, 1, 2), np.zeros(3), 0.0, 1, True, 1, over),
        lambda: pricing.search(kind, pricing.PricingSearch(3, 0, 2), np.zeros(3), 0.0, 1, True, 1, over),
        lambda: pricing.search(kind, work, np.zeros(3), 0.0, 0, True, 1, over),
    ):
        with pytest.raises(ValueError, match="options"):
            call()


def test_patterns_of_more_jobs_than_are_looked_at() -> None:
    """Where a node has room for more jobs than a pattern may have, it is said that patterns may be missing."""
    fleet, speeds = Fleet.regular(racks=1, nodes=1, gpus=64), gangs(4).speeds
    for count in (DEEPEST - 1, DEEPEST + 8):
        jobs = tuple(GangJob(f"j{i}", speeds.models[0], (1,)) for i in range(count))
        batch = PreparedBatch(PlacementProblem(fleet, jobs, speeds))
        kin = families(batch)
        search = Pricing(batch, np.array([len(x) for x in kin.members]), kin.apart, options_of(batch, kin, 0))
        pays = 100 * search.options.cost(slice(None))
        found = pricing.search(search.kind, search.work, pays, 0.0, 9, True, 10**6, np.zeros(1, np.uint8))
        assert found[3] is (count < DEEPEST)


def test_it_ends_when_told() -> None:
    """A flag that another thread sets ends a search, which then says that patterns may be missing."""
    problem, over = dict(problems())["6 of 16"], np.ones(1, np.uint8)
    batch = PreparedBatch(problem)
    kin = families(batch)
    search = Pricing(batch, np.array([len(jobs) for jobs in kin.members]), kin.apart, options_of(batch, kin, 0))
    pays = 2 * search.options.cost(slice(None))
    assert pricing.search(search.kind, search.work, pays, 0.0, 9, True, 10**6, over)[3] is False
    over[0] = 0
    assert pricing.search(search.kind, search.work, pays, 0.0, 9, True, 10**6, over)[3] is True
