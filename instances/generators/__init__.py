"""Problems that the project makes itself: networks, random graphs, gangs, and jobs over time."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from ..arrays import plain
from ..errors import InstanceError, did_you_mean, unknown
from ..lazy import Lazy, exported

if TYPE_CHECKING:
    from ..partition import PartitionProblem
    from ..pipeline import PipelineProblem
    from ..placement import PlacementProblem
    from ..schedule import ScheduleProblem
    from ..workload import Workload
    from .builder import ELEMENT_BYTES as ELEMENT_BYTES
    from .builder import GraphBuilder as GraphBuilder
else:
    __getattr__ = exported(__name__, {".builder": "ELEMENT_BYTES GraphBuilder"})

_MODULES = {
    "language_models": ("bert", "gpt", "moe", "gnmt"),
    "image_models": ("resnet", "vgg", "inception"),
    "dlrm": ("dlrm",),
    "random_graphs": ("layered", "fork_join", "series_parallel", "pipeline"),
}
GENERATORS = Lazy(__name__, {name: f".{module}" for module, names in _MODULES.items() for name in names})
"""Functions that make an op graph, a `GraphBuilder`, by kind; their arguments are its options."""
JOBS = Lazy(__name__, {"gangs": ".gangs", "moldable": ".jobs", "arrivals": ".jobs", "micro_batches": ".pipelines"})
"""Functions that make jobs, by kind: a placement and a schedule problem, a workload to simulate, a pipeline problem."""


@overload
def generate(kind: Literal["gangs"], **options: Any) -> PlacementProblem: ...
@overload
def generate(kind: Literal["moldable"], **options: Any) -> ScheduleProblem: ...
@overload
def generate(kind: Literal["arrivals"], **options: Any) -> Workload: ...
@overload
def generate(kind: Literal["micro_batches"], **options: Any) -> PipelineProblem: ...
@overload
def generate(kind: str, *, objective: Literal["throughput"] = "throughput", **options: Any) -> PartitionProblem: ...
@overload
def generate(kind: str, **options: Any) -> Any: ...
def generate(
    kind: str,
    *,
    training: Annotated[bool, "add the backward pass"] = True,
    efficiency: Annotated[float, "share of the peak FLOP/s that is reached"] = 0.5,
    devices: Annotated[int, "GPUs"] = 4,
    device_type: Annotated[str, "P100, V100, A100, H100, H200 or B200"] = "A100",
    memory: Annotated[float | None, "bytes of a GPU, instead of the data sheet's"] = None,
    bandwidth: Annotated[float | None, "bytes/s of a GPU's link, instead of the data sheet's"] = None,
    variant: Annotated[str, "contiguous, convex or free"] = "contiguous",
    objective: Annotated[str, "throughput, latency, step or stages"] = "throughput",
    **options: Any,
) -> Any:
    """Make a problem, the same for the same arguments.

    Args:
        kind: an op graph, one of `GENERATORS`, or jobs, one of `JOBS`: ``gangs`` is a placement problem, ``moldable`` a
            schedule problem, ``arrivals`` a workload to simulate, ``micro_batches`` a pipeline problem. Of jobs, all
            arguments are `options`.
        training: see `with_backward`; latency is of a forward pass, and never has the backward ops.
        efficiency: see `roofline`.
        devices, device_type, memory, bandwidth: see `gangplan.instances.devices.server`.
        variant: of the objective throughput.
        options: of the kind, e.g. ``layers=24``; see `defaults`. One that is None is as if not given.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    if not isinstance(kind, str) or not (kind in GENERATORS or kind in JOBS):
        raise InstanceError("kind", unknown(kind, (*GENERATORS, *JOBS)))
    devices, memory, bandwidth, efficiency = map(plain, (devices, memory, bandwidth, efficiency))
    given = {name: plain(value) for name, value in options.items() if value is not None}
    if kind in JOBS:
        common = {"training": training, "efficiency": efficiency, "devices": devices, "device_type": device_type}
        common |= {"memory": memory, "bandwidth": bandwidth, "variant": variant, "objective": objective}
        given |= {name: value for name, value in common.items() if value != COMMON[name]}
    for name, value in given.items():
        if name not in defaults(kind):
            known = [*defaults(kind), *(COMMON if kind in GENERATORS else ())]
            words = f"{value!r} does not apply to {kind}{did_you_mean(name, known)}; its options are {', '.join(known)}"
            raise InstanceError(name, words)
    if kind in JOBS:
        return JOBS[kind](**given)
    from ..devices import server
    from ..kinds import with_objective
    from ..partition import PartitionProblem

    cluster = server(devices, device_type, memory, bandwidth)
    training = False if objective == "latency" else training
    graph = GENERATORS[kind](**given).graph(*cluster.device_types, training=training, efficiency=efficiency)
    return with_objective(PartitionProblem(graph, cluster, variant), objective)


COMMON = {name: x.default for name, x in signature(generate).parameters.items() if x.kind is Parameter.KEYWORD_ONLY}
"""What every op graph can be told, with defaults."""


def defaults(kind: str) -> dict[str, Any]:
    """Return the options of a kind with their defaults, whose types are the options' types."""
    function = JOBS[kind] if kind in JOBS else GENERATORS[kind]
    return {name: parameter.default for name, parameter in signature(function).parameters.items()}
