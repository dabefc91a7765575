"""Partition problems that the project makes itself: networks from their architectures, and random graphs."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from ..devices import server
from ..errors import InstanceError
from ..partition import PartitionProblem
from ..placement import PlacementProblem
from ..schedule import ScheduleProblem
from ..workload import Workload
from .arrivals import arrivals
from .builder import ELEMENT_BYTES, GraphBuilder
from .dlrm import dlrm
from .gangs import gangs
from .gnmt import gnmt
from .inception import inception
from .moe import moe
from .moldable import moldable
from .pipeline import pipeline
from .random_dag import fork_join, layered
from .resnet import resnet
from .roofline import EFFICIENCY
from .series_parallel import series_parallel
from .transformer import bert, gpt
from .vgg import vgg

__all__ = [
    "ELEMENT_BYTES",
    "GENERATORS",
    "JOBS",
    "PLACEMENTS",
    "SCHEDULES",
    "WORKLOADS",
    "GraphBuilder",
    "defaults",
    "generate",
]

GENERATORS: dict[str, Callable[..., GraphBuilder]] = {
    "bert": bert,
    "gpt": gpt,
    "moe": moe,
    "gnmt": gnmt,
    "resnet": resnet,
    "vgg": vgg,
    "inception": inception,
    "dlrm": dlrm,
    "layered": layered,
    "fork_join": fork_join,
    "series_parallel": series_parallel,
    "pipeline": pipeline,
}
"""What `generate` can make, by kind; the functions' keyword arguments are its options."""
PLACEMENTS: dict[str, Callable[..., PlacementProblem]] = {"gangs": gangs}
"""Generators of placement problems, by kind."""
SCHEDULES: dict[str, Callable[..., ScheduleProblem]] = {"moldable": moldable}
"""Generators of schedule problems, by kind."""
WORKLOADS: dict[str, Callable[..., Workload]] = {"arrivals": arrivals}
"""Generators of workloads, by kind."""
JOBS: dict[str, Callable[..., PlacementProblem | ScheduleProblem | Workload]] = {**PLACEMENTS, **SCHEDULES, **WORKLOADS}
"""Generators of jobs: all that make no op graph."""


def generate(
    kind: str,
    *,
    training: bool = True,
    efficiency: float = EFFICIENCY,
    devices: int = 4,
    device_type: str = "A100",
    memory: float | None = None,
    bandwidth: float | None = None,
    variant: str = "contiguous",
    **options: Any,
) -> PartitionProblem:
    """Make a partition problem, the same for the same arguments.

    Args:
        kind: one of `GENERATORS`.
        training: add the backward ops, see `with_backward`.
        efficiency: share of the peak FLOP/s that is reached, see `roofline`.
        devices, device_type, memory, bandwidth: see `gangplan.instances.devices.server`; the device type must be
            one of its catalogue.
        variant: of the partition problem.
        options: of the kind, e.g. ``layers=24``; see `defaults`. One that is None is as if not given.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    if not isinstance(kind, str) or kind not in GENERATORS:
        raise InstanceError("kind", f"{kind!r} is not one of {', '.join(GENERATORS)}")
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name not in defaults(kind):
            raise InstanceError(
                name, f"{value!r} does not apply to {kind}; its options are {', '.join(defaults(kind))}"
            )
    cluster = server(devices, device_type, memory, bandwidth)
    graph = GENERATORS[kind](**given).graph(*cluster.device_types, training=training, efficiency=efficiency)
    return PartitionProblem(graph, cluster, variant)


def defaults(kind: str) -> dict[str, Any]:
    """Return the options of a kind with their defaults, whose types are the options' types."""
    function: Callable[..., Any] = JOBS[kind] if kind in JOBS else GENERATORS[kind]
    return {name: parameter.default for name, parameter in signature(function).parameters.items()}
