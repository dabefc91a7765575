"""Mended placements are feasible, cost what the verifier says, never more than before, on tiny batches the least."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.instances import verify
from gangplan.instances.generators.gangs import gangs
from gangplan.learned.placement.decode import Decoder
from gangplan.solvers.placement.mend import Mender, mender
from gangplan.solvers.placement.methods import SUITE
from gangplan.solvers.placement.prepare import Batch

KINDS: list[dict[str, Any]] = [
    {},
    {"collective": "ps", "optional": 0.3},
    {"collective": "hierarchical", "gpus": 4, "whole_nodes": 0.5},
    {"menus": 0.4, "selectors": 0.3, "spread": 0.4, "apart": 0.4, "shares": 0.6},
    {"gpu_types": "A100,V100", "running": 0.4, "goal": "throughput"},
    {"running": 0.5, "movable": 0.5, "optional": 0.3},
]


@pytest.mark.parametrize("options", KINDS)
def test_it_costs_what_the_verifier_says(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever jobs ask for: the compiled costs are those of the verifier, and no more than before."""
    said: list[float] = []
    plain = mender.search
    monkeypatch.setattr(mender, "search", lambda *args: said.append(plain(*args)))
    better = 0
    for seed in range(4):
        problem = gangs(**{"jobs": 14, "racks": 2, "nodes": 4, "load": 0.8, "seed": seed, **options})
        decoder = Decoder(None, Batch(problem))
        before = decoder.place()
        if before is None:
            continue
        after = decoder.mend(10, seed)
        verdict = verify(problem, decoder.mended.state.plan())
        assert not verdict.violations and verdict.objective == pytest.approx(after, rel=1e-9)
        assert after is not None and after <= before * (1 + 1e-12)
        if not options.get("shares"):  # what jobs on a GPU do to each other is judged only in the end
            assert said[-1] == pytest.approx(after, rel=1e-9)
        better += after < before * (1 - 1e-9)
    assert said and (better or not options)


def test_tiny_batches_come_to_the_optimum() -> None:
    """From the worst placement that is easily had, rounds lead to what enumeration finds, on all but few."""
    missed, worse = 0, 0
    for seed in range(12):
        problem = gangs(jobs=4, racks=1, nodes=3, gpus=3, load=0.9, seed=seed)
        decoder = Decoder(None, Batch(problem))
        decoder.scores = lambda decision: decision.price  # type: ignore[method-assign]
        before, least = decoder.place(), SUITE.optimum(problem)
        after = decoder.mend(60)
        assert before is not None and after is not None and least is not None
        worse += before > least * (1 + 1e-9)
        missed += after > least * (1 + 1e-9)
    assert worse > 3 and missed <= 1


def test_the_same_seed_mends_alike_and_jobs_that_stay_do() -> None:
    """A seed says all; pinned jobs are where they were."""
    problem = gangs(jobs=16, racks=2, nodes=4, load=0.9, seed=4, running=0.5, movable=0.3)
    batch = Batch(problem)
    rows = Decoder(None, batch)
    assert rows.place() is not None and batch.pinned
    start = rows.builder.state.snapshot()
    first, second = Mender(batch), Mender(batch)
    assert first(start, 20, 3) == second(start, 20, 3)
    assert first.state.rows == second.state.rows
    assert all(first.state.rows[j] == held for j, held in batch.pinned.items())


def test_it_ends_when_told() -> None:
    """Once `until` says so there is not another chunk of rounds, and the placement is one."""
    batch = Batch(gangs(jobs=40, racks=4, nodes=8, load=0.9, seed=4))
    decoder = Decoder(None, batch)
    before = decoder.place()
    asked = iter([False, True])
    after = Mender(batch)(decoder.builder.state.snapshot(), 10_000, 0, lambda: next(asked))
    assert before is not None and after <= before and next(asked, None) is None


def test_there_is_nothing_to_mend_without_a_placement() -> None:
    """Where some gang found no place there is no cost."""
    batch = Batch(gangs(jobs=6, racks=1, nodes=4, seed=1))
    assert Decoder(None, batch).mend(5) is None
    assert np.isfinite(Decoder(None, batch).place() or np.inf)
