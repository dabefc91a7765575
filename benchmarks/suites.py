"""What is run: suites of cases, a case being one instance, one variant, one method and one time limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import gangplan
from gangplan import PartitionProblem

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


@dataclass(frozen=True, slots=True)
class Case:
    """One solve to do.

    Attributes:
        instance: a name that says how it was made; unique together with the variant.
        variant, method, time_limit: as for `gangplan.solve`; the method may also be a rival's name.
        make: builds the problem, given the folder of published data.
    """

    instance: str
    variant: str
    method: str
    time_limit: float
    make: Callable[[Path], PartitionProblem]


def published() -> list[Case]:
    """Return the published throughput graphs: all variants by auto, and each method on pipelines."""
    exact = [("auto", 60.0), ("cpsat", 30.0), ("milp", 30.0)]
    quick = [("greedy", 10.0), ("pipedream", 10.0), ("local_search", 10.0)]
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


SUITES: dict[str, Callable[[], list[Case]]] = {
    "published": published,
    "rivals": rivals,
    "pipedream": pipedream,
    "generated": generated,
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


def _read(file: str, variant: str, data: Path) -> PartitionProblem:
    return gangplan.read(data / file, variant=variant)


def _read_profile(file: str, devices: int, bandwidth: float | None, data: Path) -> PartitionProblem:
    return gangplan.read(data / file, devices=devices, bandwidth=bandwidth)


def _generate(kind: str, devices: int, options: dict[str, int], data: Path) -> PartitionProblem:
    return gangplan.generate(kind, devices=devices, **options)  # type: ignore[arg-type]  # mypy: any name might be a key
