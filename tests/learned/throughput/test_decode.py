"""Scores to pipelines: always feasible, exact along a line, never worse than PipeDream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import verify
from gangplan.instances.generators import generate
from gangplan.instances.generators.families import make, seed_of
from gangplan.learned.throughput.decode import Decoder, decoder
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.throughput.chain import best_chain
from gangplan.solvers.partition.throughput.family import Family
from gangplan.solvers.partition.throughput.lattice import prefixes
from gangplan.solvers.partition.throughput.polish import stage_of

TOOLS = suite("throughput")


def _random(decoders: int, groups: int = 3) -> list[tuple[object, Decoder]]:
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
            draft = made.decode(row)
            if draft is not None:
                verdict = verify(problem, made.plan(draft))  # type: ignore[arg-type]
                assert verdict.objective == pytest.approx(draft.load, rel=1e-9)
                planned += 1
    assert planned > 60


def test_a_line_is_cut_as_the_recurrence_of_the_solvers_cuts_it() -> None:
    """Along one order, with several types of devices or memory, the cuts are those of `best_chain`."""
    compared = 0
    for _, made in _random(30):
        order = made.orders.forward(np.random.default_rng(1).standard_normal(made.q.n_groups))
        found = made.cuts.best(order[None, :], made.ceiling)
        known = best_chain(Family(made.q, list(prefixes(order.tolist()))), made.ceiling)
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
        made = decoder(make("throughput", "series_parallel", seed_of("validation", i), 100))  # type: ignore[arg-type]
        if made is None:
            continue
        scores = made.place + 0.3 * rng.standard_normal((16, made.q.n_groups))
        orders = np.stack([made.orders.forward(row) for row in scores])
        each = [found[0] for x in orders if (found := made.cuts.best(x[None, :], made.ceiling)) is not None]
        both = made.cuts.best(orders, made.ceiling)
        if each:
            assert both is not None and both[0] <= min(each) * (1 + 1e-9)
            better += both[0] < min(each) * (1 - 1e-6)
    assert better


def test_orders_respect_the_graph_from_both_ends() -> None:
    """Every order is a linear extension; scores of one give it back from either end."""
    made = decoder(make("throughput", "layered", seed_of("validation", 8), 60))  # type: ignore[arg-type]
    assert made is not None
    scores = np.random.default_rng(0).standard_normal(made.q.n_groups)
    for order in (made.orders.forward(scores), made.orders.backward(scores)):
        place = np.argsort(order)
        assert sorted(order.tolist()) == list(range(made.q.n_groups))
        assert all(place[a] < place[b] for a, b in made.q.edges)
    assert made.orders.backward(np.argsort(order).astype(float)).tolist() == order.tolist()


def test_equal_scores_give_pipedream_or_better() -> None:
    """Without scores the plan is no worse than PipeDream's, which has the same order; polish never makes it worse."""
    for i, family in enumerate(("layered", "fork_join", "series_parallel", "pipeline") * 3):
        problem = make("throughput", family, seed_of("validation", i), 60)
        made = decoder(problem)  # type: ignore[arg-type]
        if made is None or made.base is None:
            continue
        run = Run(problem, time_limit=10)
        TOOLS.methods["pipedream"].run(run, TOOLS.prepare(run))
        assert run.objective == pytest.approx(made.base.load, rel=1e-9)
        draft = made.decode(np.zeros(made.q.n_groups))
        assert draft is not None and draft.load <= made.base.load * (1 + 1e-9)


def test_the_optimum_is_found_by_the_scores_that_say_it() -> None:
    """Scores that are the stages of the optimal plan decode to it: the decoder can say every pipeline."""
    problem = make("throughput", "layered", seed_of("validation", 11), 24)
    run = Run(problem, time_limit=10)
    TOOLS.methods["pipeline"].run(run, TOOLS.prepare(run))
    made = decoder(problem)  # type: ignore[arg-type]
    assert made is not None and run.plan is not None and run.gap is not None and run.gap < 1e-6
    first = np.unique(made.q.group_of, return_index=True)[1]
    draft = made.decode(2.0 * run.plan.stage[first])
    assert draft is not None and draft.load == pytest.approx(run.objective, rel=1e-6)


def test_join_is_no_worse_than_its_best() -> None:
    """Plans put together give one that is no worse, and no plans give none."""
    made = decoder(make("throughput", "series_parallel", seed_of("validation", 2), 100))  # type: ignore[arg-type]
    assert made is not None
    rows = np.random.default_rng(0).standard_normal((8, made.q.n_groups))
    drafts = [x for row in rows if (x := made.decode(row)) is not None]
    joined = made.join(drafts)
    assert joined is not None and joined.load <= min(x.load for x in drafts)
    assert made.join([]) is None
    assert (stage_of(joined.stages, made.q.n_groups) < made.q.counts.sum()).all()


def test_what_cannot_fit_has_no_plan() -> None:
    """Where memory is short of what the ops need there is no decoder; where an order cannot be cut there is no plan."""
    problem = generate("layered", ops=8, layers=4, devices=2, seed=0)
    kinds = tuple(replace(x, memory=1.0) for x in problem.cluster.device_types)
    assert decoder(replace(problem, cluster=replace(problem.cluster, device_types=kinds))) is None
