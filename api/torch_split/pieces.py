"""Cut a traced model into the pieces that a plan gives its devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gangplan.instances import InstanceError, PartitionPlan, Plan, StagesPlan
from gangplan.instances.torch_model.ops import Ops
from gangplan.instances.torch_model.program import ProgramNode


@dataclass(frozen=True, slots=True)
class Piece:
    """Calls that one device makes without waiting for another in between.

    Attributes:
        device: where.
        nodes: the calls, in their order.
        receives: values that other pieces make.
        sends: values for other pieces, with the indices of those.
        inputs: names of the model's inputs that it reads.
        state: names of the parameters and buffers that it reads.
        outputs: the model's outputs among its values.
    """

    device: int
    nodes: tuple[ProgramNode, ...]
    receives: tuple[str, ...]
    sends: dict[str, tuple[int, ...]]
    inputs: tuple[str, ...]
    state: tuple[str, ...]
    outputs: tuple[str, ...]


def forward_part(ops: Ops, plan: Plan) -> tuple[list[int], list[int]]:
    """Return the device and the stage of each op of the model, from a plan for its forward or its training graph.

    A plan without stages gets one for each device, in the order in which the model comes to them. Of devices that share
    a stage, as replicas or in parallel, the first stands for all.
    """
    names = [op.name for op in ops.ops]
    n = len(names)
    for i, (mine, theirs) in enumerate(zip(plan.ops, names, strict=False)):
        if mine != theirs:
            raise InstanceError(f"ops[{i}]", f"{mine!r} is not the model's {theirs!r}: it is a plan for another model")
    if len(plan.ops) not in (n, 2 * n):
        raise InstanceError("ops", f"has {len(plan.ops)} entries, the model {n}: it is a plan for another model")
    if isinstance(plan, StagesPlan):
        stage = plan.stage[:n].tolist()
        serves = plan.serves.tolist()
        return [serves.index(x) for x in stage], stage
    device = plan.device[:n].tolist()
    if isinstance(plan, PartitionPlan):
        return device, plan.stage[:n].tolist()
    order = list(dict.fromkeys(device))
    return device, [order.index(x) for x in device]


def stage_devices(plan: Plan, device: list[int], stage: list[int]) -> list[dict[str, object]]:
    """Return for each stage its devices, and how many of them share one replica."""
    if isinstance(plan, StagesPlan):
        shared = {s: [d for d, x in enumerate(plan.serves.tolist()) if x == s] for s in sorted(set(stage))}
        return [{"stage": s, "devices": found, "degree": int(plan.degree[s])} for s, found in shared.items()]
    return [{"stage": s, "devices": [d], "degree": 1} for s, d in sorted(set(zip(stage, device, strict=True)))]


def pieces(ops: Ops, device: list[int], stage: list[int]) -> tuple[Piece, ...]:
    """Cut a model.

    Where the stages form a chain there is a piece for each; otherwise a device's part is cut where it has to wait for
    another one.

    Returns:
        pieces such that each receives from earlier ones only.
    """
    chain = all(stage[u] <= stage[v] for u, v in ops.edges)
    rank = stage if chain else _ranks(ops, device)
    order = sorted({(r, d) for r, d in zip(rank, device, strict=True)})
    index = {place: i for i, place in enumerate(order)}
    piece_of = [index[r, d] for r, d in zip(rank, device, strict=True)]
    program, local, home = ops.profile.program, ops.local, ops.home
    made = {name: piece_of[i] for name, i in home.items()}
    wanted: list[set[str]] = [set() for _ in order]
    readers: dict[str, set[int]] = {}
    for name, here in made.items():
        for read in ops.nodes[name].reads:
            if read in local:
                wanted[here] |= _behind(read, local, ops.nodes)
            elif made[read] != here:
                readers.setdefault(read, set()).add(here)
    result = []
    for i, (_, where) in enumerate(order):
        nodes = tuple(node for node in program.nodes if made.get(node.name) == i or node.name in wanted[i])
        receives = tuple(name for name, users in readers.items() if i in users)
        sends = {name: tuple(sorted(users)) for name, users in readers.items() if made[name] == i}
        inputs, state = (tuple(x for x in names if x in wanted[i]) for names in (program.inputs, program.state))
        outputs = tuple(name for name in dict.fromkeys(program.outputs) if made.get(name) == i)
        result.append(Piece(where, nodes, receives, sends, inputs, state, outputs))
    return tuple(result)


def _ranks(ops: Ops, device: list[int]) -> list[int]:
    """Return how often the longest path to each op has changed devices."""
    rank = [0] * len(device)
    for u, v in sorted(ops.edges, key=lambda edge: edge[1]):  # ops are in topological order
        rank[v] = max(rank[v], rank[u] + (device[u] != device[v]))
    return rank


def _behind(name: str, local: dict[str, Any], by_name: dict[str, ProgramNode]) -> set[str]:
    """Return a value that belongs to no op, and all that it is made of."""
    reads: Iterable[str] = by_name[name].reads if name in by_name else ()
    return {name}.union(*(_behind(read, local, by_name) for read in reads))
