"""Compiled gangs do to the bit what numba's did before them, and what they do as plain Python."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.simulator.gangs import allocate, arrays, formula, listing, step
from gangplan.solvers import native
from gangplan.solvers.placement.online import closest

from ...solvers.uncompiled import uncompiled

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit feefd4b9 made of `KINDS`."""
FIELDS = ["clock", "count", "queue", "running", "free", "holder", "held", "start", "finish", "urgency", "cost"]


def world(seed: int) -> tuple[np.random.Generator, Any, Any]:
    """Return jobs and a cluster: racks of one node and of many, some nodes without GPUs, jobs of all sizes and none."""
    rng = np.random.default_rng(seed)
    racks = rng.integers(1, (2, 5, 9)[seed % 3], size=rng.integers(1, 6))
    size = rng.integers(0 if seed % 4 == 3 else 1, 9, size=racks.sum())
    size[0] = max(size[0], 1)
    first, rack = np.append(0, np.cumsum(size)), np.repeat(np.arange(len(racks)), racks)
    weight = np.sort(rng.random(3)) * (seed % 5 > 0)
    place = arrays.GpuRacks(rack, np.append(0, np.cumsum(racks)), first, weight, np.repeat(np.arange(len(size)), size))
    n = (0, 1, 12, 60)[min(seed % 11, 3)]
    gpus = np.minimum(2 ** rng.integers(0, 8, n), first[-1]) if seed % 2 else rng.integers(1, first[-1] + 1, n)
    submit = np.sort(rng.integers(0, 20, n) * 1.0 if seed % 3 else rng.uniform(0, 50, n))
    work = rng.integers(0, 6, n) * 1.0 if seed % 3 == 1 else rng.lognormal(0, 2, n)
    told = work * rng.lognormal(0, 0.5, n) if seed % 2 else work
    return rng, arrays.Jobs(submit, work, told, gpus, 3 * rng.random(n), np.append(0, np.cumsum(gpus))), place


def digest(*states: Any) -> str:
    """Return a short name of states, to the bit; behind the jobs that wait and run anything may be."""
    text = []
    for state in states:
        live = {"queue": state.count[1], "running": state.count[2]}
        text.append([getattr(state, name)[: live.get(name)].tolist() for name in FIELDS])
    return hashlib.sha256(repr(text).encode()).hexdigest()[:10]


def allocated(seed: int) -> str:
    """Let each rule place jobs of all sizes on a cluster that is more and less full."""
    rng, _, place = world(seed)
    text, m = [], len(place.rack)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        free = np.where(rng.random(m) < share, rng.integers(0, np.diff(place.first) + 1), 0)
        for rule in range(4):
            for need in {0, 1, 2, 3, 4, 5, 8, 9, int(free.max()), int(free.max()) + 1, int(free.sum()), 999}:
                take = np.full(m, 7)
                text.append((allocate.allocate(rule, need, place, free, take), take.tolist()))
    return hashlib.sha256(repr(text).encode()).hexdigest()[:10]


def started(seed: int) -> str:
    """Start whoever fits, by one rule after the other."""
    rng, jobs, place = world(seed)
    state, take = arrays.begin(jobs, place), np.zeros(len(place.rack), np.int64)
    while step.advance(jobs, place, state):
        at = 0
        while at < state.count[1]:
            rule = int(rng.integers(4))
            if allocate.allocate(rule, int(jobs.gpus[state.queue[at]]), place, state.free, take):
                step.start(jobs, place, state, at, take)
            else:
                at += 1
    return digest(state)


def by_formula(seed: int) -> str:
    """Play by weights that are drawn, some of them none and some infinite, to the middle and on to the end."""
    rng, jobs, place = world(seed)
    text = []
    for weights in (formula.PATIENT, formula.EVOLVED, *rng.normal(size=(4, len(formula.TERMS)))):
        w = weights * (rng.random(len(formula.TERMS)) < 0.7)
        w[-1] = max(w[-1], 0.0)
        w[4] = np.inf if rng.random() < 0.1 else w[4]
        state = arrays.begin(jobs, place)
        looked = formula.finish(jobs, place, state, w, 15.0)
        half = digest(state)
        text.append((looked, half, formula.finish(jobs, place, state, w), digest(state)))
    return hashlib.sha256(repr(text).encode()).hexdigest()[:10]


def by_list(seed: int) -> str:
    """Play by lists that are drawn, with keys that are alike, to the middle and on to the end."""
    rng, jobs, place = world(seed)
    states, n = [], len(jobs.submit)
    for _ in range(3):
        most = np.where(rng.random(n) < 0.3, rng.uniform(0, 8, n), np.inf)
        of = listing.Listing(rng.integers(0, 9, n) * 1.0, rng.integers(0, 4, n), most, rng.integers(0, 2, n))
        for until in (10.0, np.inf):
            states.append(arrays.begin(jobs, place))
            listing.run_list(jobs, place, states[-1], of, until)
        listing.run_list(jobs, place, states[-2], of, np.inf)
    return digest(*states)


KINDS: dict[str, Callable[[int], str]] = {x.__name__: x for x in (allocated, started, by_formula, by_list)}
SOME = (2, 5, 9)
MODULES = (native, closest, arrays, step, allocate, listing, formula)


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_those_recorded(kind: str) -> None:
    """Runs by each rule, by formulas and by lists end as numba's kernels had them."""
    assert [KINDS[kind](seed) for seed in range(66)] == json.loads(GOLDEN.read_text())[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_does_what_is_compiled(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from the source as plain Python jobs start at the same times on the same GPUs."""
    compiled = [KINDS[kind](seed) for seed in SOME]
    for i, module in enumerate(MODULES[2:], 3):
        monkeypatch.setitem(globals(), module.__name__.rpartition(".")[2], uncompiled(*MODULES[:i]))
    assert [KINDS[kind](seed) for seed in SOME] == compiled


def test_arrays_of_another_size_are_refused() -> None:
    """What does not fit is not read or written beyond its end."""
    _, jobs, place = world(8)
    _, other, small = world(2)
    state, m, n = arrays.begin(jobs, place), len(place.rack), len(jobs.submit)
    step.advance(jobs, place, state)
    take, ideal, of = np.zeros(m, np.int64), step.least_cost(place), (formula.PATIENT, step.least_cost(place))
    assert (
        allocate.allocate(3, int(jobs.gpus[state.queue[0]]), place, state.free, take)
        and m > 1
        and n > len(other.submit)
    )
    late, more = state.copy(), take.copy()
    late.count[1], more[0] = n + 1, more[0] + 1
    some = listing.Listing(np.zeros(3), np.zeros(3, np.int64), np.zeros(3), np.zeros(3, np.int64))
    for call in (
        lambda: jobs.replace(work=np.zeros(n + 1)),
        lambda: place.replace(rack=place.rack + 1),
        lambda: place.replace(node=place.node + m),
        lambda: state.replace(queue=np.zeros(n - 1, np.int64)),
        lambda: state.replace(queue=np.zeros(n)),
        lambda: some.replace(key=np.zeros(2)),
        lambda: state.require(jobs, small),
        lambda: arrays.begin(other, place).require(jobs, place),
        lambda: step.advance(jobs, place, late),
        lambda: step.start(jobs, place, state, -1, take),
        lambda: step.start(jobs, place, state, int(state.count[1]), take),
        lambda: step.start(jobs, place, state, 0, take[1:].copy()),
        lambda: step.start(jobs, place, state, 0, more),
        lambda: step.start(jobs, place, state, 0, -take),
        lambda: allocate.allocate(3, 1, place, state.free, take[1:].copy()),
        lambda: closest.find_closest(1, place.begin, state.free, take[1:].copy()),
        lambda: closest.find_closest(1, place.begin + 1, state.free, take),
        lambda: closest.find_closest(int(state.free.sum()) + 1, place.begin, state.free, 0 * take),
        lambda: listing.run_list(jobs, place, state, some, 9.0),
        lambda: formula.Formula(formula.PATIENT[1:].copy(), ideal, m, n),
        lambda: formula.play(jobs, place, state, formula.Formula(*of, m, n - 1), 9.0),
        lambda: formula.play(jobs, place, state, formula.Formula(*of, m - 1, n), 9.0),
        lambda: formula.play(jobs, place, state, formula.Formula(of[0], ideal[1:].copy(), m, n), 9.0),
    ):
        with pytest.raises(ValueError, match=r"\d|dtype"):
            call()


def test_arrays_are_those_of_compiled_code() -> None:
    """What Python writes into an attribute compiled code reads; a copy is another one, and a pickle the same."""
    _, jobs, place = world(8)
    state, then = arrays.begin(jobs, place), arrays.begin(jobs, place)
    assert digest(pickle.loads(pickle.dumps(state))) == digest(state) and state.arrays()["free"] is state.free
    copied = state.copy()
    step.advance(jobs, place, state)
    assert digest(copied) == digest(then) != digest(state)
    state.clock[0], jobs.submit[:] = 5.0, 7.0
    step.advance(jobs, place, then)
    assert then.clock.tolist() == [7.0]
