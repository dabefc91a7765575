"""What is run: suites of cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import gangplan
from gangplan import Level, StepProblem, TreeTopology
from gangplan.instances import GraphProblem
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import PlacementProblem

PCIE = 16e9
"""Bytes/s of PCIe 3.0 with 16 lanes in one direction, what a server without NVLink has."""

PUBLISHED = (
    "layer-bert24_inference",
    "layer-bert24_training",
    "layer-gnmt_inference",
    "layer-gnmt_training",
    "layer-resnet50_inference",
    "layer-resnet50_training",
    "layer-inceptionv3_inference",
    "layer-inceptionv3_training",
    "operator-bert_l-3_inference",
    "operator-resnet50_inference",
)
"""The throughput inputs of Tarnawski et al., NeurIPS 2020."""

PROFILES = (
    "alexnet",
    "vgg16",
    "squeezenet1_0",
    "resnet18",
    "resnet50",
    "resnet101",
    "resnext50",
    "resnext101",
    "densenet121",
    "inception_v3",
    "gnmt",
    "gnmt_large",
    "nasnetamobile",
    "nasnetalarge",
)
"""The profiles of PipeDream, SOSP 2019."""

GENERATED: tuple[tuple[str, str, int, dict[str, int]], ...] = (
    ("resnet50", "resnet", 16, {}),
    ("bert-base", "bert", 16, {}),
    ("bert-large", "bert", 16, {"layers": 24, "hidden": 1024, "heads": 16}),
    ("gpt2", "gpt", 16, {}),
    ("gpt2-xl", "gpt", 16, {"layers": 48, "hidden": 1600, "heads": 25}),
    ("gpt-178", "gpt", 64, {"layers": 178}),
    ("gpt-178", "gpt", 48, {"layers": 178}),
    ("gpt-178", "gpt", 16, {"layers": 178}),
)
"""Name, kind, devices and options of graphs from `gangplan.generate`; gpt-178 has 4,996 ops.

On 64 devices its largest op, the head, decides; on 48 the average load is as large; on 16 balance alone decides."""

LATENCY = (
    "layer-bert24_inference",
    "layer-gnmt_inference",
    "layer-resnet50_inference",
    "layer-inceptionv3_inference",
    "operator-bert_l-3_inference",
)
"""The latency inputs of Tarnawski et al., NeurIPS 2020."""

TRAINED = ("alexnet", "vgg16", "gnmt", "squeezenet1_0", "resnet18", "gnmt_large", "resnext50", "resnet50")
"""PipeDream's profiles of at most 354 ops, backward pass included."""

NVLINK, ETHERNET = 300e9, 25e9
"""Bytes/s of an A100's NVLink in one direction, and of 200 Gb/s between servers."""

SYNTHETIC: tuple[tuple[str, str, int, dict[str, int]], ...] = (
    ("layered-64", "layered", 30, {"ops": 64}),
    ("pipeline-8x4", "pipeline", 30, {"stages": 8, "micro_batches": 4}),
    ("layered-128", "layered", 60, {"ops": 128}),
    ("pipeline-8x8", "pipeline", 60, {"stages": 8, "micro_batches": 8}),
)
"""Name, kind, seconds and options of graphs whose step is timed on two servers of four A100s; five seeds each."""

GIB = 2**30
REPLICATED: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("vgg16", "2x8", (4 * GIB, 2 * GIB)),
    ("resnet50", "2x8", (4 * GIB, 2 * GIB)),
    ("gnmt", "4", (2 * GIB,)),
    ("alexnet", "4", (2 * GIB,)),
    ("resnet50", "4", (2 * GIB,)),
)
"""Profile, cluster and bytes/s of each level, the inner one first: what PipeDream's optimiser was run on."""


@dataclass(frozen=True, slots=True)
class Case:
    """One solve to do.

    Attributes:
        instance: a name that says how it was made; unique together with the variant.
        variant, method, time_limit: as for `gangplan.solve`, the variant being the objective where there is none; the
            method may also be a rival's name.
        make: builds the problem, given the folder of published data.
    """

    instance: str
    variant: str
    method: str
    time_limit: float
    make: Callable[[Path], GraphProblem | PlacementProblem]


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches of one size, on nodes of eight A100s.

    Attributes:
        jobs, racks, nodes: how many jobs, how many racks, how many nodes in a rack.
        first, last: loads of the first and of the last seed, between them in even steps.
        seeds: how many, from 0 on.
        seconds: the time limit.
        compared: seeds that rivals get too.
    """

    jobs: int
    racks: int
    nodes: int
    first: float
    last: float
    seeds: int
    seconds: float
    compared: tuple[int, ...]

    @property
    def size(self) -> str:
        """Say how large they are."""
        return f"{self.jobs}@{self.racks * self.nodes}x8"

    def load(self, seed: int) -> float:
        """Return the load of the batch of a seed, which is the generator's seed too."""
        return self.first + (self.last - self.first) * seed / (self.seeds - 1)

    def name(self, seed: int) -> str:
        """Return the instance name of a batch."""
        return f"gangs/{self.size}/load{self.load(seed):.2f}/seed{seed}"

    def case(self, seed: int, method: str, limit: float | None = None) -> Case:
        """Return the case of a batch."""
        return Case(self.name(seed), "placement", method, limit or self.seconds, partial(self._make, seed))

    def _make(self, seed: int, data: Path) -> PlacementProblem:
        return gangs(self.jobs, self.racks, self.nodes, gpus=8, load=self.load(seed), seed=seed)


SIZES = (
    Batches(16, 2, 8, 0.6, 0.95, 20, 10.0, (4, 10, 16)),
    Batches(16, 2, 4, 0.8, 0.95, 10, 60.0, (0, 4, 8)),
    Batches(64, 4, 8, 0.9, 0.9, 10, 60.0, (0, 4, 8)),
)


def published() -> list[Case]:
    """Return the published throughput graphs: all variants by auto, and each method on pipelines."""
    exact = [("auto", 60.0), ("cpsat", 30.0), ("milp", 30.0)]
    quick = [("pipedream", 10.0), ("local_search", 10.0)]
    cases = [_published(name, "contiguous", *run) for run in exact + quick for name in PUBLISHED]
    return cases + [_published(name, variant, "auto", 60.0) for variant in ("convex", "free") for name in PUBLISHED]


def rivals() -> list[Case]:
    """Return the published graphs by the package's models and the plain formulations, one after the other."""
    methods = ("auto", "cpsat", "plain_cpsat", "milp", "plain_milp")
    return [_published(name, "contiguous", method, 20.0) for name in PUBLISHED for method in methods]


def pipedream() -> list[Case]:
    """Return all profiles, training, on A100s with NVLink and over PCIe; 16 devices first, NASNet with 60 s."""
    grid = [(16, None), (16, PCIE), (8, None), (8, PCIE), (4, None), (4, PCIE)]
    return [_profile(name, devices, bandwidth) for devices, bandwidth in grid for name in PROFILES]


def generated() -> list[Case]:
    """Return networks the package generates itself, training, on A100s with NVLink."""
    return [
        Case(f"generated/{name}@{devices}", "contiguous", "auto", 60.0, partial(_generate, kind, devices, options))
        for name, kind, devices, options in GENERATED
    ]


def latency() -> list[Case]:
    """Return the published latency graphs: by auto, and by each exact method."""
    runs = [("auto", 60.0), ("cpsat", 60.0), ("greedy", 10.0), ("local_search", 10.0)]
    return [_latency(name, *run) for run in runs for name in LATENCY]


def step() -> list[Case]:
    """Return steps on two servers: synthetic ones of 64 and 128 ops, and PipeDream's, on 80 and on 16 GB."""
    made = [_step(*row[:3], seed, row[3], "auto") for row in SYNTHETIC for seed in range(5)]
    sizes = [(cluster, memory) for memory in (None, 16e9) for cluster in ("2x2", "2x4")]
    return made + [_trained(name, *size) for size in sizes for name in TRAINED]


def stages() -> list[Case]:
    """Return what PipeDream's optimiser was run on."""
    return [_stages(*row, "auto") for row in REPLICATED]


def objectives() -> list[Case]:
    """Return latency, step and stages by the package and by plain formulations, one after the other."""
    cases = [_latency(name, method, 20.0) for name in LATENCY for method in ("auto", "plain_cpsat", "plain_milp")]
    for row in SYNTHETIC[:2]:
        for seed in range(5):
            cases += [
                _step(row[0], row[1], 20, seed, row[3], method) for method in ("auto", "plain_cpsat", "plain_milp")
            ]
    return cases + [_stages(*row, method, 20.0) for row in REPLICATED[2:] for method in ("auto", "plain_dp")]


def placement() -> list[Case]:
    """Return all batches."""
    return [size.case(seed, "auto") for size in SIZES for seed in range(size.seeds)]


def gang_rivals() -> list[Case]:
    """Return some of them by the package's models and the plain formulations, one after the other."""
    ours, plain = ("auto", "cpsat"), ("plain_cpsat", "plain_milp")
    cases = [size.case(seed, m, 20.0) for size in SIZES[:2] for seed in size.compared for m in (*ours, *plain)]
    # 64 jobs on 32 nodes are more than the MILP is for
    return cases + [SIZES[2].case(seed, m) for seed in SIZES[2].compared for m in (*ours[:2], *plain)]


SUITES: dict[str, Callable[[], list[Case]]] = {
    "published": published,
    "rivals": rivals,
    "pipedream": pipedream,
    "generated": generated,
    "latency": latency,
    "step": step,
    "stages": stages,
    "objectives": objectives,
    "placement": placement,
    "gang_rivals": gang_rivals,
}


def profile_name(name: str, devices: int, bandwidth: float | None) -> str:
    """Return the instance name of a profile on so many devices."""
    return f"pipedream/{name}@{devices}{'' if bandwidth is None else '-pcie'}"


def _published(name: str, variant: str, method: str, limit: float) -> Case:
    return Case(f"msr/{name}", variant, method, limit, partial(_read, f"msr-placement/throughput/{name}.json", variant))


def _profile(name: str, devices: int, bandwidth: float | None) -> Case:
    limit = 60.0 if name.startswith("nasnet") and devices == 16 else 20.0
    make = partial(_read_profile, f"pipedream/{name}.txt", devices, bandwidth)
    return Case(profile_name(name, devices, bandwidth), "contiguous", "auto", limit, make)


def _read(file: str, variant: str, data: Path) -> GraphProblem:
    return gangplan.read(data / file, variant=variant)


def _read_profile(file: str, devices: int, bandwidth: float | None, data: Path) -> GraphProblem:
    return gangplan.read(data / file, devices=devices, bandwidth=bandwidth)


def _generate(kind: str, devices: int, options: dict[str, int], data: Path) -> GraphProblem:
    return gangplan.generate(kind, devices=devices, **options)  # type: ignore[arg-type]  # mypy: any name might be a key


def _latency(name: str, method: str, limit: float) -> Case:
    make = partial(_read_as, f"msr-placement/latency/{name}.json", "latency", {})
    return Case(f"msr/{name}", "latency", method, limit, make)


def _step(name: str, kind: str, limit: float, seed: int, options: dict[str, int], method: str) -> Case:
    return Case(f"{name}/seed{seed}@2x4", "step", method, float(limit), partial(_make_step, kind, seed, options))


def _make_step(kind: str, seed: int, options: dict[str, int], data: Path) -> GraphProblem:
    made = gangplan.generate(kind, seed=seed, training=kind == "pipeline", **options)  # type: ignore[arg-type]
    levels = (Level("server", NVLINK), Level("rack", ETHERNET))
    two_servers = replace(made.cluster, type_of=[0] * 8, topology=TreeTopology.regular(levels, (4, 2)))
    return StepProblem(made.graph, two_servers)


def _trained(name: str, cluster: str, memory: float | None) -> Case:
    options = {"cluster": cluster, "memory": memory, "bandwidth": (NVLINK, ETHERNET)}
    instance = f"pipedream/{name}@{cluster}{'' if memory is None else '-16GB'}"
    return Case(instance, "step", "auto", 60.0, partial(_read_as, f"pipedream/{name}.txt", "step", options))


def _stages(name: str, cluster: str, bandwidth: tuple[float, ...], method: str, limit: float = 30.0) -> Case:
    make = partial(_read_as, f"pipedream/{name}.txt", "stages", {"cluster": cluster, "bandwidth": bandwidth})
    return Case(f"pipedream/{name}@{cluster}", "stages", method, limit, make)


def _read_as(file: str, objective: str, options: dict[str, object], data: Path) -> GraphProblem:
    return gangplan.read(data / file, objective=objective, **options)
