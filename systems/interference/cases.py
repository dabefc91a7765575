"""Cases by name and seed: what arrives on which servers, under which truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray, require_choice, require_number, require_share
from gangplan.instances.errors import InstanceError, unknown
from gangplan.instances.placement import Fleet
from gangplan.instances.published import DATA, published
from gangplan.instances.readers.gavel import read_gavel_trace
from gangplan.instances.readers.traces import read_trace

from .case import InterferenceCase, centres, harmony_fleet, moved
from .truths import (
    EPOCH,
    MEASURED,
    TESTBED,
    HiddenTruth,
    JobTypes,
    TrueJobs,
    contention,
    gangs_of,
    gpu_pairs,
    link_pairs,
)

"""Where published data is, unless said otherwise."""
VALIDATION, TRAINING = 1_000_000, 2_000_000
"""Seeds of arrivals: those below the first are for tests, from it on for validation, from the second for training."""
SYNCHRONISATION = ("mixed", "ps", "ring")
_GANGS, _CHANCE = (1, 2, 3, 4), (0.3, 0.35, 0.15, 0.2)
_SHORTEST, _LONGEST = 1200.0, 10800.0
"""Seconds of a job whose workers and parameter servers are mixed on servers, evenly drawn on a logarithmic scale."""
_GAVEL_TYPES = {  # by what a model does: the type of the testbed that is nearest
    "ResNet-18": ("ResNet-50", "ResNeXt-110"),
    "ResNet-50": ("ResNet-50", "VGG-16"),
    "Transformer": ("Seq2Seq",),
    "LM": ("WLM",),
    "Recommendation": ("DSSM",),
    "A3C": ("CTC",),
    "CycleGAN": ("Inception-BN",),
}


def poisson(
    seed: int,
    jobs: int = 100,
    servers: int = 6,
    *,
    kind: str = "mixed",
    load: float = 0.7,
    share: float = 1.0,
    cluster: int = 0,
) -> InterferenceCase:
    """Return a Poisson mix of the eight types on servers of two GPUs.

    Args:
        seed: of the jobs; see `VALIDATION`.
        servers: how many, in racks of up to eight.
        kind: jobs with parameter servers (``ps``), with a ring all-reduce (``ring``), or half of each (``mixed``).
        load: GPU seconds that arrive a second, over the GPUs, if every job ran as it does mixed and alone.
        share: of a GPU that a worker needs.
        cluster: seed of the truth.
    """
    rng = _generator(seed, jobs)
    types = rng.integers(len(TESTBED.names), size=jobs, dtype=np.int32)
    workers = rng.choice(_GANGS, jobs, p=_CHANCE).astype(np.int32)
    require_share(share, "share", positive=True)
    case = _of_testbed(
        rng, types, workers, _seconds(rng, jobs), None, servers, kind=kind, load=load / share, cluster=cluster
    )
    worker = case.jobs.worker * np.array([share, 1.0, 1.0])
    return case if share == 1.0 else replace(case, jobs=replace(case.jobs, worker=worker))


def gavel_mix(path: str, seed: int, jobs: int = 100, servers: int = 6, **words: Any) -> InterferenceCase:
    """Return jobs drawn from a trace of Gavel, each as the type of the testbed that is nearest to its model.

    Args:
        path: the trace; its models and its numbers of GPUs are drawn, up to eight.
        seed, jobs, servers, words: as of `poisson`.
    """
    rng, trace = _generator(seed, jobs), read_gavel_trace(path)
    drawn, types = rng.integers(len(trace.model), size=jobs), np.empty(jobs, dtype=np.int32)
    for at, line in enumerate(drawn.tolist()):
        model = trace.model[line].partition(" (")[0]
        if model not in _GAVEL_TYPES:
            raise InstanceError("model", unknown(model, _GAVEL_TYPES), str(path))
        near = _GAVEL_TYPES[model]
        types[at] = TESTBED.names.index(near[rng.integers(len(near))])
    workers = np.minimum(trace.gpus[drawn], 8).astype(np.int32)
    return _of_testbed(rng, types, workers, _seconds(rng, jobs), None, servers, **words)


def philly(path: str, seed: int, jobs: int = 100, servers: int = 6, **words: Any) -> InterferenceCase:
    """Return a stretch of Philly's trace: its gaps, its numbers of GPUs and its durations, with types drawn evenly.

    Gaps are shortened or lengthened alike to the load; a job has at most eight workers, and runs 5 minutes to 12 hours.

    Args:
        path: the trace, or any other that `read_trace` knows.
        seed, jobs, servers, words: as of `poisson`; the seed draws where the stretch begins.
    """
    rng, trace = _generator(seed, jobs), read_trace(path).workload
    if trace.n_jobs < jobs:
        raise InstanceError("jobs", f"{jobs!r} are more than the {trace.n_jobs} of the trace", str(path))
    order = np.argsort(trace.submit, kind="stable")
    begin = int(rng.integers(trace.n_jobs - jobs + 1))
    rows = order[begin : begin + jobs]
    workers = np.minimum(trace.gpus[rows], 8).astype(np.int32)
    seconds, submit = np.clip(trace.duration[rows], 300.0, 43200.0), trace.submit[rows] - trace.submit[rows[0]]
    types = rng.integers(len(TESTBED.names), size=jobs, dtype=np.int32)
    return _of_testbed(rng, types, workers, seconds, submit, servers, **words)


def gavel_pairs(
    folder: str, seed: int, jobs: int = 100, servers: int = 12, *, gpu: str = "p100", load: float = 0.9
) -> InterferenceCase:
    """Return jobs of a trace of Gavel under the speeds that Gavel measured of them: two may share each server's GPU.

    Args:
        folder: with ``simulation_throughputs.json`` and ``max_min_fairness.trace``.
        seed, jobs: as of `poisson`.
        servers: of one GPU each.
        gpu: its type.
        load: GPU seconds that arrive a second, alone on GPUs of their own, over the GPUs.
    """
    rng, trace = _generator(seed, jobs), read_gavel_trace(Path(folder) / "max_min_fairness.trace")
    table, fleet = Path(folder) / "simulation_throughputs.json", harmony_fleet(servers, rack=servers, gpus=1)
    types, truth = gpu_pairs(table, fleet, gpu)
    names = [f"{model} x{gpus}" for model, gpus in zip(trace.model, trace.gpus.tolist(), strict=True)]
    kinds = rng.choice([types.names.index(name) for name in names if name in types.names], jobs).astype(np.int32)
    return _of_table(rng, types, fleet, kinds, truth, load, share=0.5)


def deepshare(folder: str, seed: int, jobs: int = 100, servers: int = 6, *, load: float = 0.7) -> InterferenceCase:
    """Return DeepShare's gangs, drawn evenly, on servers of four GPUs under the shares that it measured on links.

    Args:
        folder: with ``shared_thp_ratio.csv`` and ``isolated_thp.csv``.
        seed, jobs, servers, load: as of `gavel_pairs`.
    """
    rng, fleet = _generator(seed, jobs), harmony_fleet(servers, gpus=4)
    types, truth = link_pairs(folder, fleet)
    return _of_table(
        rng, types, fleet, rng.integers(len(types.names), size=jobs, dtype=np.int32), truth, load, share=1.0
    )


def _generator(seed: int, jobs: int) -> np.random.Generator:
    require_number(seed, "seed", whole=True)
    require_number(jobs, "jobs", positive=True, whole=True)
    return np.random.default_rng([seed, 2021])


def _seconds(rng: np.random.Generator, jobs: int) -> FloatArray:
    return np.asarray(np.exp(rng.uniform(np.log(_SHORTEST), np.log(_LONGEST), jobs)))


def _of_testbed(
    rng: np.random.Generator,
    types: IntArray,
    workers: IntArray,
    seconds: FloatArray,
    submit: FloatArray | None,
    servers: int,
    *,
    kind: str = "mixed",
    load: float = 0.7,
    cluster: int = 0,
) -> InterferenceCase:
    require_choice(kind, "kind", SYNCHRONISATION)
    fleet, jobs = harmony_fleet(servers), len(types)
    serving = rng.integers((workers + 1) // 2, workers + 1, dtype=np.int32)
    if kind == "ring":
        serving[:] = 0
    elif kind == "mixed":
        serving[rng.random(jobs) < 0.5] = 0
    epochs = np.maximum(1.0, np.round(seconds * workers / (MEASURED[1] * TESTBED.batches)[types]))
    submit = _arrivals(rng, seconds * workers, load, fleet, submit)
    return InterferenceCase(
        fleet, TrueJobs(TESTBED, submit, types, workers, serving, epochs), contention(fleet, cluster)
    )


def _of_table(
    rng: np.random.Generator,
    types: JobTypes,
    fleet: Fleet,
    kinds: IntArray,
    truth: HiddenTruth,
    load: float,
    share: float,
) -> InterferenceCase:
    seconds, workers = _seconds(rng, len(kinds)), np.array(gangs_of(types.names), dtype=np.int32)[kinds]
    epochs = np.maximum(1.0, np.round(seconds / EPOCH))
    submit = _arrivals(rng, seconds * workers, load, fleet, None)
    worker = np.tile((share, 2.0, 8e9), (len(kinds), 1))
    jobs = TrueJobs(types, submit, kinds, workers, np.zeros_like(workers), epochs, worker)
    return InterferenceCase(fleet, jobs, truth)


def _arrivals(
    rng: np.random.Generator, work: FloatArray, load: float, fleet: Fleet, submit: FloatArray | None
) -> FloatArray:
    """Return times at which GPU seconds arrive at a load: Poisson, or those given, stretched."""
    require_number(load, "load", positive=True)
    gap, jobs = float(work.mean()) / (load * fleet.n_gpus), len(work)
    if submit is None:
        submit = np.cumsum(rng.exponential(gap, jobs))
        return np.asarray(submit - submit[0])
    return np.asarray(submit * (gap * jobs / submit[-1]) if submit[-1] > 0 else submit)


def _in_centre(make: Callable[..., InterferenceCase], path: str, seed: int, jobs: int = 400) -> InterferenceCase:
    """Return a case of the testbed that needs data, on 64 servers of a data centre."""
    return moved(partial(make, path), "leaf-spine", seed, jobs, 64, load=1.5)


CENTRES = centres(poisson)
"""Data centres of many agents that need no data, by name."""
_DATA_CENTRES = {
    "leaf-spine-gavel": ("gavel/max_min_fairness.trace", partial(_in_centre, gavel_mix)),
    "leaf-spine-philly": ("philly/philly.csv.gz", partial(_in_centre, philly)),
}
OF_AGENTS = (*CENTRES, *_DATA_CENTRES)
"""Names of all cases that are data centres."""
CASES: dict[str, Callable[..., InterferenceCase]] = {
    "poisson": poisson,
    "ps": partial(poisson, kind="ps"),
    "ring": partial(poisson, kind="ring"),
    "shared": partial(poisson, share=0.5),
    "poisson-32": partial(poisson, jobs=400, servers=32, load=0.9),
    **CENTRES,
}
"""Cases that need no data, by name: functions of a seed."""
DATA_CASES: dict[str, tuple[str, Callable[..., InterferenceCase]]] = {
    "gavel-mix": ("gavel/max_min_fairness.trace", gavel_mix),
    "philly": ("philly/philly.csv.gz", philly),
    "gavel-pairs": ("gavel", gavel_pairs),
    "deepshare": ("deepshare", deepshare),
    **_DATA_CENTRES,
}
"""Those that need data: where it is in a folder of it, and functions of that path and a seed."""


def maker(name: str, data: Path | str = DATA, **words: Any) -> Callable[[int], InterferenceCase]:
    """Return what makes the case of a seed, by the name of the case.

    Args:
        name: one of `CASES` or `DATA_CASES`.
        words: other arguments of the case, e.g. ``jobs``.

    Raises:
        InstanceError: if there is no such case, or its data is not there.
    """
    require_choice(name, "case", (*CASES, *DATA_CASES))
    if name in CASES:
        return partial(CASES[name], **words)
    part, made = DATA_CASES[name]
    return partial(made, str(published(data, part)), **words)
