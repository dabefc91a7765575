"""Whatever makes a pipeline, by name: exact solvers, heuristics, the learned policy, its ablations and its decoder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from gangplan.instances import PartitionProblem, verify
from gangplan.learned.throughput.decode import Decoder, Draft, decoder
from gangplan.learned.throughput.drafts import best_of, greedy
from gangplan.learned.throughput.refine import refined
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.throughput.bounds import counting_bound
from gangplan.solvers.partition.throughput.methods import Reduced

HEURISTICS = ("greedy", "pipedream", "local_search")
LONG, _LONG = "local search (20 s)", 20.0
"""How good a plan can be found at all, which is how far off the bound is."""
NETWORKS = {
    "learned": "throughput",
    "imitation only": "throughput-imitation",
    "RL only": "throughput-rl",
    "one label": "throughput-one",
    "GNN": "throughput-gnn",
}
"""The shipped network and the others, by the names of their weights."""
SAMPLES, HEADS = 16, 8
"""In brackets, and how many the shipped network has."""
_SEARCH = 2.0
"""Seconds of a heuristic at most."""
_PROOF = 25.0
"""Seconds of the processor for a bound."""
Found = tuple[float | None, float | None, float]
"""Objective, bound, milliseconds of the processor: the machine had other work."""


def methods(weights: Path, few: bool = False, large: bool = False) -> tuple[str, ...]:
    """Return the methods there are weights for; `few` are without ablations, and for `large` graphs the quick ones."""
    learned, random = ("learned", f"learned ({SAMPLES})"), ("decoder", "random", f"random ({SAMPLES})")
    if large:
        return "greedy", "pipedream", *learned, *random
    if few:
        return *HEURISTICS, *learned, *random, "local search (ms)"
    there = [name for name, file in NETWORKS.items() if (weights / f"{file}.safetensors").exists()]
    own = [x for name in there for x in (name, f"{name} ({SAMPLES})")]
    trees = ["trees", f"trees ({SAMPLES})"] if (weights / "throughput-trees.joblib").exists() else []
    return (*HEURISTICS, *own, *trees, *random, "local search (ms)")


def judge(problem: PartitionProblem, method: str, weights: Path, *, seed: int, limit: float) -> Found:
    """Return what a method comes to on an instance, on one core; the clock includes all but reading and warming up.

    ``decoder`` is the policy's decoder with scores of 0, ``random`` with as many random ones as the policy has heads;
    in brackets, how many vectors of scores are decoded.All of these are annealed as the
    policy's plans are. ``local search (ms)`` has as long as the policy.
    """
    _warm(weights)
    if method in ("cpsat", "pipeline", *HEURISTICS):
        seconds = _SEARCH if method in HEURISTICS else limit if method == "cpsat" else limit / 10
        return _solved(problem, method, seconds)
    if method == LONG:
        return _solved(problem, "local_search", _LONG)
    if method == "local search (ms)":
        begin = perf_counter()
        _planned(problem, "learned", weights, seed)
        return _solved(problem, "local_search", perf_counter() - begin)
    return _planned(problem, method, weights, seed)


def bound(problem: PartitionProblem, best: float, known: float = 0.0) -> float:
    """Return a bound on a large pipeline, given a plan and a bound: by counting, by cuts, by ideals, by shares."""
    from gangplan.solvers.partition.throughput.cut_bound import cut_bound
    from gangplan.solvers.partition.throughput.share_bound import share_bounds

    q, until = Reduced(problem).pipeline, process_time() + _PROOF
    cuts = cut_bound(q, best, lambda: process_time() > until - 0.8 * _PROOF)
    least = max(_solved(problem, "pipeline", 6.0)[1] or 0.0, counting_bound(q), cuts, known)
    return max([least, *share_bounds(q, least, best, lambda: process_time() > until)])


def _solved(problem: PartitionProblem, method: str, seconds: float) -> Found:
    begin = process_time()
    run, tools = Run(problem, time_limit=seconds), suite("throughput")
    tools.methods[method].run(run, tools.prepare(run))
    return run.objective, run.bound, 1e3 * (process_time() - begin)


def _planned(problem: PartitionProblem, method: str, weights: Path, seed: int) -> Found:
    begin = process_time()
    made = decoder(problem)
    draft = None if made is None else _draft(made, method, weights, seed)
    samples = SAMPLES if "(" in method else 1
    plan = None if made is None or draft is None else made.plan(refined(made, draft, samples=samples))
    took = 1e3 * (process_time() - begin)
    return None if plan is None else verify(problem, plan).objective, None, took


def _draft(made: Decoder, method: str, weights: Path, seed: int) -> Draft | None:
    name, _, brackets = method.partition(" (")
    n = made.q.n_groups
    if name == "decoder":
        return made.decode(np.zeros(n))
    if name == "random":
        heads = np.random.default_rng(seed).standard_normal((n, HEADS))
    elif name == "trees":
        heads = _trees(weights / "throughput-trees.joblib").scores(made)
    else:
        heads = _policy(weights / f"{NETWORKS[name]}.safetensors").scores(made)
    return best_of(made, heads, SAMPLES, seed) if brackets else greedy(made, heads)


@lru_cache(maxsize=8)
def _policy(path: Path) -> Any:
    import torch

    from gangplan.learned.throughput.policy import ThroughputPolicy

    torch.set_num_threads(1)
    return ThroughputPolicy.load(path)


@lru_cache(maxsize=1)
def _trees(path: Path) -> Any:
    import joblib

    from .learned_throughput_trees import Trees

    return Trees(joblib.load(path))


@lru_cache(maxsize=1)
def _warm(weights: Path) -> None:
    """Compile, import and load whatever is needed later."""
    from gangplan.instances.generators.families import make, seed_of

    problem: Any = make("throughput", "layered", seed_of("validation", 1), 150)
    for method in methods(weights):
        if method != "local search (ms)":
            judge_once = _solved if method in HEURISTICS else None
            if judge_once:
                judge_once(problem, method, 1.0)
            else:
                _planned(problem, method, weights, 0)
    _solved(problem, "cpsat", 1.0)
