"""Batches of gang jobs on a cluster: real models, made-up arrivals, interference from what the models load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from ..arrays import FloatArray, require_choice, require_counts, require_share
from ..devices import EFFICIENCY, LINK_BANDWIDTH, catalogue, roofline
from ..placement import Demand, Fleet, GangJob, PlacementProblem, Running, SpeedModel
from ..placement.job import COLLECTIVES
from .jobs import sized

PCIE = 25e9
"""Bytes/s between a GPU and its host in one direction: PCIe 4.0 x16 less its overhead."""


@dataclass(frozen=True, slots=True)
class ModelType:
    """A model type as its authors describe it.

    Attributes:
        parameters: how many.
        flops: of a forward pass of one sample, a multiply-add counting as two.
        activations: bytes that a forward pass of one sample writes, in 16 bits.
        input: bytes of a sample as it reaches the GPU.
        batch: samples of a worker in a step.
        cores: that feed one GPU.
        bytes: of an element of the gradient, 2 or 4.
    """

    parameters: float
    flops: float
    activations: float
    input: float
    batch: int
    cores: int
    bytes: int


_IMAGE = 4 * 3 * 224 * 224
NETWORKS: dict[str, ModelType] = {
    # parameters, multiply-adds and activations of the convolutional networks: Radosavovic et al. (CVPR 2020), table 3,
    # and the papers of the networks; of transformers: 2 FLOP a parameter and token, activations of
    # Korthikanti et al. (MLSys 2023), s b h (34 + 5 a s / h) bytes a layer
    "resnet50": ModelType(25.6e6, 8.2e9, 22e6, _IMAGE, 64, 8, 4),
    "vgg16": ModelType(138.4e6, 31e9, 27e6, _IMAGE, 32, 6, 4),
    "inception3": ModelType(23.8e6, 11.4e9, 20e6, 4 * 3 * 299 * 299, 64, 8, 4),
    "mobilenet2": ModelType(3.5e6, 0.6e9, 13e6, _IMAGE, 128, 8, 4),
    "transformer_big": ModelType(213e6, 2 * 213e6 * 64, 12 * 64 * 1024 * 34, 512, 64, 2, 2),
    "bert_base": ModelType(110e6, 2 * 110e6 * 128, 12 * (128 * 768 * 34 + 5 * 12 * 128**2), 1024, 32, 2, 2),
    "bert_large": ModelType(340e6, 2 * 340e6 * 512, 24 * (512 * 1024 * 34 + 5 * 16 * 512**2), 4096, 8, 2, 2),
    "gpt2_xl": ModelType(1.56e9, 2 * 1.56e9 * 1024, 48 * (1024 * 1600 * 34 + 5 * 25 * 1024**2), 8192, 2, 2, 2),
}


def gangs(
    jobs: Annotated[int, "how many"] = 16,
    racks: Annotated[int, "how many"] = 2,
    nodes: Annotated[int, "of a rack"] = 8,
    gpus: Annotated[int, "of a node"] = 8,
    load: Annotated[
        float,
        "GPUs that all jobs ask for, as a share of those of the fleet; a fleet of few GPUs a job has a load of at "
        "least a GPU a job",
    ] = 0.8,
    seed: Annotated[int, "of the random choices"] = 0,
    *,
    gpu_types: Annotated[str, "names of the catalogue, separated by commas; racks take them in turn"] = "A100",
    collective: Annotated[str, "ring, tree, hierarchical or ps; mixed draws one a job"] = "mixed",
    menus: Annotated[float, "share of the jobs that may also run with half their workers"] = 0.0,
    shares: Annotated[float, "share of the jobs of one GPU that need a part of it only"] = 0.0,
    selectors: Annotated[
        float, "share of the jobs that need a node with a fast disk, which every second node has"
    ] = 0.0,
    spread: Annotated[
        float, "share of the jobs of several workers that allow half a node's worth of them per node"
    ] = 0.0,
    apart: Annotated[float, "share of the jobs that avoid the job before them"] = 0.0,
    whole_nodes: Annotated[
        float, "share of the jobs that take nodes for themselves; only those that fill them are asked"
    ] = 0.0,
    optional: Annotated[float, "share of the jobs that may be left out"] = 0.0,
    running: Annotated[float, "share of the jobs that run already"] = 0.0,
    movable: Annotated[float, "share of those that may be moved"] = 0.5,
    down: Annotated[float, "share of the nodes that are not usable"] = 0.0,
    goal: Annotated[str, "of the problem: slowdown, throughput, communication or fragmentation"] = "slowdown",
    sizes: Annotated[
        str, "of gangs, with weights, e.g. 1:6,2:2,8:1, instead of those above; the load is then at most the one given"
    ] = "",
) -> PlacementProblem:
    """Make a batch of gang jobs and a cluster of racks of equal nodes, the same for the same arguments.

    Gangs are powers of two mostly, many small and few large, as in the traces of Philly and Helios; what is left to
    the demand asked for goes to some of them. Step times follow from the roofline, gradients from the numbers of
    parameters, interference from what the models load: see `speeds`.
    """
    require_counts(jobs=jobs, racks=racks, nodes=nodes, gpus=gpus)
    portions = {"menus": menus, "shares": shares, "selectors": selectors, "spread": spread, "apart": apart}
    portions |= {"whole_nodes": whole_nodes, "optional": optional, "running": running, "movable": movable, "down": down}
    for name, portion in {"load": load, **portions}.items():
        require_share(portion, name, positive=name == "load")
    require_choice(collective, "collective", (*COLLECTIVES, "mixed"))
    rng = np.random.default_rng(seed)
    fleet = _fleet(rng, racks, nodes, gpus, gpu_types.split(","), down)
    demand = round(load * int(fleet.gpus[fleet.usable].sum()))
    drawn = _sizes(rng, jobs, demand, sizes)
    batch: list[GangJob] = []
    for i, size in enumerate(drawn):
        batch.append(_job(rng, i, size, gpus, collective, portions, batch))
    standing = _standing(rng, fleet, batch, running, movable)
    return PlacementProblem(fleet, tuple(batch), speeds(fleet.gpu_types, rng), standing, goal)


def speeds(gpu_types: tuple[str, ...], rng: np.random.Generator, efficiency: float = EFFICIENCY) -> SpeedModel:
    """Return the speeds of `NETWORKS` on GPUs of the catalogue.

    A step of batch b is 3 b forward passes' FLOPs, and moves the activations four times and 16 bytes a parameter. The
    share of the peak and of the memory bandwidth that it uses, and the share of PCIe that its samples and gradients
    use, are the intensities f, m and p of a model. Two jobs on a GPU slow each other by f f' + m m', two on a host by
    p p' / 2; each figure times a log-normal of deviation 0.2, for what such a model does not see.
    """
    kinds = [catalogue[name] for name in gpu_types]
    nets = list(NETWORKS.values())
    flops = np.array([3 * x.batch * x.flops for x in nets])
    moved = np.array([4 * x.batch * x.activations + 16 * x.parameters for x in nets])
    gradient = np.array([x.bytes * x.parameters for x in nets])
    compute = np.stack([roofline(kind, flops, moved, efficiency) for kind in kinds])
    first, seconds = kinds[0], compute[0]
    busy = flops / (float(first.flops or 1) * efficiency) / seconds
    memory = moved / float(first.memory_bandwidth or 1) / seconds
    pcie = np.minimum(1.0, (np.array([x.batch * x.input for x in nets]) + gradient) / seconds / PCIE)
    return SpeedModel(
        models=tuple(NETWORKS),
        gpu_types=gpu_types,
        compute=compute,
        gradient=gradient,
        # all of the backward pass, two thirds of the compute, can hide it but for the first layers
        overlap=np.full(len(nets), 0.5),
        host=np.outer(pcie, pcie) / 2 * _noise(rng, len(nets)),
        gpu=(np.outer(busy, busy) + np.outer(memory, memory) + np.outer(pcie, pcie) / 2) * _noise(rng, len(nets)),
    )


def _noise(rng: np.random.Generator, n: int) -> FloatArray:
    return np.exp(rng.normal(0.0, 0.2, (n, n)))


def _fleet(rng: np.random.Generator, racks: int, nodes: int, gpus: int, types: list[str], down: float) -> Fleet:
    for name in types:
        require_choice(name, "gpu_types", catalogue)
    kinds = tuple(dict.fromkeys(types))
    rack = np.arange(racks * nodes) // nodes
    kind = np.array([kinds.index(types[r % len(types)]) for r in rack.tolist()])
    fleet = Fleet.regular(racks, nodes, gpus, gpu_type=kinds[0], cpu=12.0 * gpus, memory=128e9 * gpus)
    usable = np.ones(len(rack), dtype=bool)
    usable[rng.permutation(len(rack))[: int(down * len(rack))]] = False
    return replace(
        fleet,
        gpu_types=kinds,
        gpu_type=kind,
        link=np.array([LINK_BANDWIDTH[name] for name in kinds])[kind],
        labels=("fast_disk",),
        labelled=(np.arange(len(rack)) % 2 == 0)[None],
        usable=usable,
    )


def _sizes(rng: np.random.Generator, jobs: int, demand: int, menu: str) -> list[int]:
    """Return the gangs' sizes, which add up to `demand` or to 1 each if that is more; of a menu at most to that."""
    mean = max(1.0, demand / jobs)
    if menu:
        known, share = sized(menu, "sizes")
        size = rng.choice(known, jobs, p=share)
    else:
        size = 2 ** np.maximum(0, np.round(rng.normal(np.log2(mean) - 0.7, 1.4, jobs))).astype(int)
    while size.sum() > max(demand, jobs):
        i = rng.choice(np.flatnonzero(size > 1))
        size[i] //= 2
    while not menu and (fits := np.flatnonzero(size <= demand - size.sum())).size:
        size[rng.choice(fits, p=size[fits] ** 2.0 / (size[fits] ** 2.0).sum())] *= 2
    if not menu:  # what is left is less than the smallest gang
        size[int(rng.integers(jobs))] += max(0, demand - int(size.sum()))
    return [int(x) for x in size]


def _job(
    rng: np.random.Generator,
    i: int,
    size: int,
    gpus: int,
    collective: str,
    portions: dict[str, float],
    before: list[GangJob],
) -> GangJob:
    def asked(name: str, able: bool = True) -> bool:
        return bool(rng.random() < portions[name]) and able

    model = str(rng.choice(list(NETWORKS)))
    net = NETWORKS[model]
    kind = str(rng.choice(COLLECTIVES, p=[0.4, 0.15, 0.3, 0.15])) if collective == "mixed" else collective
    if collective == "mixed" and kind == "ps" and size > 4 * gpus:
        kind = "hierarchical"  # nobody runs a few servers for hundreds of workers
    servers = min(max(1, size // 4), 4 * gpus) if kind == "ps" else 0
    part = float(rng.choice([0.25, 0.5, 0.5, 0.75])) if asked("shares", size == 1) else 1.0
    whole = asked("whole_nodes", size % gpus == 0)
    options: dict[str, Any] = {}
    if asked("optional"):
        options["value"] = float(rng.choice([2.0, 4.0, 8.0]))
    if asked("spread", size > 1 and not whole):
        options["most_per_node"] = max(1, gpus // 2)
    if asked("selectors"):
        options["requires"] = ("fast_disk",)
    if asked("apart", bool(before)):
        options["apart"] = (before[-1].name,)
    return GangJob(
        name=f"job{i}",
        model=model,
        workers=(size // 2, size) if asked("menus", size > 1) else (size,),
        worker=Demand(part, cpu=net.cores * part, memory=48e9 * part),
        collective=kind,
        servers=servers,
        server=Demand(0.0, cpu=2.0, memory=4 * net.bytes * net.parameters / servers) if servers else Demand(0.0),
        weight=float(rng.choice([1.0, 1.0, 1.0, 2.0, 4.0])),
        whole_nodes=whole,
        **options,
    )


def _standing(
    rng: np.random.Generator, fleet: Fleet, batch: list[GangJob], running: float, movable: float
) -> tuple[Running, ...]:
    """Return where the running jobs are: first fit in random order of the nodes, those that constrain nothing."""
    plain = [job for job in batch if not (job.requires or job.apart or job.most_per_node or job.whole_nodes)]
    avoided = {name for job in batch for name in job.apart}
    plain = [job for job in plain if job.worker.gpu == 1 and job.name not in avoided]
    order = rng.permutation(np.flatnonzero(np.asarray(fleet.usable))).tolist()
    free = fleet.gpus.copy()
    found = []
    for job in plain[: round(running * len(batch))]:
        left, rows = job.workers[-1], []
        while left:
            node = next(n for n in order if free[n])
            here = min(left, int(free[node]))
            free[node] -= here
            left -= here
            rows.append((fleet.names[node], here))
        nodes, workers = zip(*rows, strict=True)
        # a server needs 2 cores and the workers leave 4 a GPU, so the first nodes of the gang have room for them
        servers = [min(2 * w, max(0, job.servers - 2 * sum(workers[:i]))) for i, w in enumerate(workers)]
        moves = bool(rng.random() < movable)
        found.append(Running(job.name, nodes, workers, tuple(servers), moves, 0.25 if moves else 0.0))
    return tuple(found)
