"""Orders to pipelines: always feasible, exact along an order, never worse than PipeDream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, OpGraph, PartitionProblem, verify
from gangplan.instances.generators import generate
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.throughput import orders as module
from gangplan.solvers.partition.throughput import pipeline
from gangplan.solvers.partition.throughput.bounds import impossible
from gangplan.solvers.partition.throughput.chain import best_chain
from gangplan.solvers.partition.throughput.cuts import best_cut, forward, stage_of
from gangplan.solvers.partition.throughput.ideals import IdealOrder, prefixes
from gangplan.solvers.partition.throughput.kernels import PipelineArrays
from gangplan.solvers.partition.throughput.methods import ReducedThroughput
from gangplan.solvers.partition.throughput.orders import OrderDecoder, Pipeline
from gangplan.solvers.partition.throughput.pipeline import few_mixes

TOOLS = suite("throughput")


def decoder(problem: PartitionProblem) -> OrderDecoder | None:
    """Return the decoder of a problem of any variant, `None` if it is plain that there is no plan."""
    q = ReducedThroughput(problem).pipeline
    few = None if impossible(q) is not None else few_mixes(q)
    return None if few is None else OrderDecoder(few)


def own_types(count: int) -> tuple[OpGraph, Cluster]:
    """Return a chain of ops that run on one type of device each, and a device of each type."""
    names, none = tuple(map(str, range(count))), np.zeros(count)
    time, ends = np.where(np.eye(count) > 0, 1.0, np.inf), np.arange(count, dtype=np.int32)
    graph = OpGraph(names, names, time, none, none, none, ends[:-1], ends[1:], none[1:])
    return graph, Cluster.flat(*((DeviceType(name), 1) for name in names), bandwidth=1.0)


def decode(made: OrderDecoder, scores: np.ndarray) -> Pipeline | None:
    """Return the polished plan along PipeDream's order with scores added to the places."""
    found = made.cut(forward(made.arrays, made.place + scores)[None])
    return None if found is None else made.polished(found)


def plan_of(made: OrderDecoder, found: Pipeline):
    """Return the plan of a pipeline."""
    return made.q.plan((t, groups.tolist()) for t, groups in found.stages)


def _random(decoders: int, groups: int = 3) -> list[tuple[PartitionProblem, OrderDecoder]]:
    found = []
    for seed in range(40):
        problem = TOOLS.random_problem(seed, TOOLS.variants[seed % 3])
        made = decoder(problem)
        if made is not None and made.q.n_groups >= groups and len(found) < decoders:
            found.append((problem, made))
    return found


def test_every_decoded_plan_is_feasible_and_costs_what_the_decoder_says() -> None:
    """On tiny problems of all variants, with hosts, types and memory that binds, the verifier finds the same load."""
    planned = 0
    for problem, made in _random(30):
        rng = np.random.default_rng(0)
        for row in rng.standard_normal((4, made.q.n_groups)):
            found = decode(made, row)
            if found is not None:
                verdict = verify(problem, plan_of(made, found))
                assert verdict.objective == pytest.approx(found.load, rel=1e-9)
                planned += 1
    assert planned > 60


def test_a_line_is_cut_as_the_recurrence_of_the_solvers_cuts_it() -> None:
    """Along one order, with several types of devices or memory, the cuts are those of `best_chain`."""
    compared = 0
    for _, made in _random(30):
        order = forward(made.arrays, np.random.default_rng(1).standard_normal(made.q.n_groups))
        found = best_cut(made.arrays, order[None, :], made.ceiling)
        known = best_chain(IdealOrder(made.q, list(prefixes(order.tolist()))), made.ceiling)
        assert (found is None) == (known is None)
        if found is not None and known is not None:
            assert found[0] == pytest.approx(known[0], rel=1e-9)
            compared += 1
    assert compared > 15


def test_orders_together_are_no_worse_than_each_and_may_be_better() -> None:
    """The recurrence over several orders changes between them where they have done the same groups."""
    rng = np.random.default_rng(0)
    better = 0
    for i in range(12):
        made = decoder(make("throughput", "series_parallel", seed_of("validation", i), 100))
        if made is None:
            continue
        keys = made.place + 0.3 * rng.standard_normal((16, made.q.n_groups))
        orders = np.stack([forward(made.arrays, row) for row in keys])
        each = [found[0] for x in orders if (found := best_cut(made.arrays, x[None, :], made.ceiling)) is not None]
        both = best_cut(made.arrays, orders, made.ceiling)
        if each:
            assert both is not None and both[0] <= min(each) * (1 + 1e-9)
            better += both[0] < min(each) * (1 - 1e-6)
    assert better


def test_orders_respect_the_graph() -> None:
    """Every order is a linear extension, and its own places give it back."""
    made = decoder(make("throughput", "layered", seed_of("validation", 8), 60))
    assert made is not None
    keys = np.random.default_rng(0).standard_normal(made.q.n_groups)
    order = forward(made.arrays, keys)
    place = np.argsort(order)
    assert sorted(order.tolist()) == list(range(made.q.n_groups))
    assert all(place[a] < place[b] for a, b in made.q.edges)
    assert forward(made.arrays, place.astype(float)).tolist() == order.tolist()


def test_no_scores_give_pipedream_or_better() -> None:
    """Without scores the plan is no worse than PipeDream's, of the same order; polish never makes it worse."""
    for i, family in enumerate(("layered", "fork_join", "series_parallel", "pipeline") * 3):
        problem = make("throughput", family, seed_of("validation", i), 60)
        made = decoder(problem)
        if made is None or made.base is None:
            continue
        run = Run(problem, time_limit=10)
        TOOLS.methods["pipedream"].run(run, TOOLS.prepare(run))
        assert run.objective == pytest.approx(made.base.load, rel=1e-9)
        found = decode(made, np.zeros(made.q.n_groups))
        assert found is not None and found.load <= made.base.load * (1 + 1e-9)


def test_the_optimum_is_found_by_the_keys_that_say_it() -> None:
    """Keys that are the stages of the optimal plan decode to it: the decoder can say every pipeline."""
    problem = make("throughput", "layered", seed_of("validation", 11), 24)
    run = Run(problem, time_limit=10)
    TOOLS.methods["pipeline"].run(run, TOOLS.prepare(run))
    made = decoder(problem)
    assert made is not None and run.plan is not None and run.gap is not None and run.gap < 1e-6
    first = np.unique(made.q.group_of, return_index=True)[1]
    found = decode(made, 2.0 * run.plan.stage[first])
    assert found is not None and found.load == pytest.approx(run.objective, rel=1e-6)


def test_join_is_no_worse_than_its_best() -> None:
    """Plans put together give one that is no worse, and no plans give none."""
    made = decoder(make("throughput", "series_parallel", seed_of("validation", 2), 100))
    assert made is not None
    rows = np.random.default_rng(0).standard_normal((8, made.q.n_groups))
    founds = [x for row in rows if (x := decode(made, row)) is not None]
    joined = made.join(founds)
    assert joined is not None and joined.load <= min(x.load for x in founds)
    assert made.join([]) is None
    assert (stage_of(joined.stages, made.q.n_groups) < made.q.counts.sum()).all()


def test_what_cannot_fit_has_no_plan() -> None:
    """Where memory is short of what the ops need there is no decoder; where an order cannot be cut there is no plan."""
    problem = generate("layered", ops=8, layers=4, devices=2, seed=0)
    kinds = tuple(replace(x, memory=1.0) for x in problem.cluster.device_types)
    assert decoder(replace(problem, cluster=replace(problem.cluster, device_types=kinds))) is None


@pytest.mark.parametrize("types", [30, 70])
def test_too_many_mixes_of_types_make_no_tables(types: int) -> None:
    """Where each of many types is the only one for some op, the recurrence says why it does nothing."""
    q = ReducedThroughput(PartitionProblem(*own_types(types))).pipeline
    run = Run(PartitionProblem(*own_types(types)), time_limit=10.0)
    assert module.decoder_of(q) is None
    assert PipelineArrays(q).states >= 2**30  # of annealing, which needs no tables
    pipeline.pipeline(run, q)
    assert run.plan is None and any("too many mixes" in note for note in run.notes)
