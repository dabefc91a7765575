"""`gangplan profile`: a PyTorch model as a partition problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from gangplan.instances import dump
from gangplan.instances.devices import EFFICIENCY, LAUNCH
from gangplan.instances.quantities import quantity
from gangplan.instances.torch_model.load import load_model

from . import options
from .output import Told, facts, table, tell, write

if TYPE_CHECKING:
    from gangplan.instances.torch_model.build import Modelled

ROWS = 24
"""Ops shown; of more, those that take longest."""


@dataclass(frozen=True)
class Modelling:
    """Keyword arguments of `model_problem`, and where ops are measured."""

    device_type: Annotated[str | None, "P100, V100, A100, H100, H200 or B200  [default: A100]"] = None
    measure: Annotated[bool, "time every op here; the devices become machines like this one"] = False
    device: Annotated[str, "where --measure computes: cpu, cuda, cuda:1 ..."] = "cpu"
    devices: Annotated[int, "how many"] = 4
    memory: Annotated[float | None, "of a device, instead of the data sheet's", "BYTES"] = None
    bandwidth: Annotated[float | None, "of a link, instead of the data sheet's", "BYTES/S"] = None
    variant: Annotated[str, "contiguous, convex or free"] = "contiguous"
    training: Annotated[bool, "with the backward pass, or without"] = True
    efficiency: Annotated[float, "share of the peak FLOP/s that is reached"] = EFFICIENCY
    launch: Annotated[float, "seconds that starting a kernel takes; 0 with CUDA graphs", "S"] = LAUNCH
    pipelining: Annotated[bool, "only plans that torch.distributed.pipelining can split"] = False
    tied: Annotated[str, "copy a parameter to every op that uses it, or colocate these"] = "copy"
    whole: Annotated[list[str] | None, "keep the ops of modules whose name matches together, e.g. 'blocks.*'"] = None


def profile(
    model: options.Model,
    given: Modelling,
    out: Annotated[str | None, "write the problem here", "FILE", options.Output()] = None,
) -> Told:
    """Trace a torch.nn.Module and make a partition problem of it.

    Needs the extra torch. Prints its ops with FLOPs, bytes, parameters and times; a training step has a backward twin
    for each.
    """
    loaded = load_model(model)
    from gangplan.instances.torch_model.build import model_problem

    how: dict[str, Any] = {**vars(given), "whole": given.whole or ()}
    device, measured = how.pop("device"), how.pop("measure")
    made = model_problem(loaded, measured=device if measured else None, **how)
    write((out, lambda _: f"{dump(made.problem)}\n"))
    rows = _rows(made, given.training)
    data = {"model": model, "traced_by": made.ops.profile.program.how, "ops": rows}
    return tell(data, *_blocks(model, made, rows, out))


def _rows(made: Modelled, training: bool) -> list[dict[str, Any]]:
    from gangplan.instances.torch_model.ops import op_flops, op_moved, parameters
    from gangplan.instances.torch_model.program import tensors

    ops, graph = made.ops, made.problem.graph
    values, n = ops.profile.values, len(ops.ops)
    flops, moved, twin_flops, twin_moved = (f(ops, b).tolist() for b in (False, True) for f in (op_flops, op_moved))
    rows = []
    for i, op in enumerate(ops.ops):
        row: dict[str, Any] = {name: getattr(op, name) for name in ("name", "module", "kind")}
        row |= {
            "inputs": [_shape(x) for name in ops.inputs(i) for x in tensors(values[name])],
            "outputs": [_shape(x) for x in tensors(values[ops.head(i)])],
            "parameters": parameters(ops, op),
            "memory": graph.memory[i].item(),
            "flops": flops[i],
            "moved": moved[i],
            "seconds": dict(zip(graph.device_types, graph.time[:, i].tolist(), strict=True)),
        }
        if training:
            seconds = dict(zip(graph.device_types, graph.time[:, 2 * n - 1 - i].tolist(), strict=True))
            row["backward"] = {"flops": twin_flops[i], "moved": twin_moved[i], "seconds": seconds}
        rows.append(row)
    return rows


def _shape(x: Any) -> dict[str, Any]:
    return {"shape": list(x.shape), "dtype": str(x.dtype).removeprefix("torch.")}


def _blocks(model: str, made: Modelled, rows: list[dict[str, Any]], out: str | None) -> list[Any]:
    from gangplan.instances.torch_model.build import HERE

    graph, program = made.problem.graph, made.ops.profile.program
    held = {name: x for name, x in program.state.items() if program.is_parameter(name)}
    kind = made.problem.cluster.device_types[0].name
    times, by = made.problem.time()[0], "this machine, measured" if kind == HERE else f"one {kind}, by the roofline"
    back = [row["backward"]["seconds"][kind] if "backward" in row else 0.0 for row in rows]
    total = sum(row["flops"] + row.get("backward", {"flops": 0.0})["flops"] for row in rows)
    head = facts(
        [
            ("model", f"{model}, traced by {program.how}"),
            ("ops", f"{len(rows)}{' and as many backward' if graph.backward.any() else ''}, {graph.n_edges} edges"),
            ("parameters", f"{sum(x.numel() for x in held.values()):,} in {len(held)} tensors"),
            ("FLOPs", f"{total:.4g}"),
            ("time", f"{quantity(float(times.sum()), 's')} on {by}"),
            ("memory", quantity(float(graph.memory.sum()), "B")),
            ("written", out or ""),
        ]
    )
    names = ("op", "output", "parameters", "GFLOP", "moved", "time", *(("backward",) if graph.backward.any() else ()))
    order = np.argsort([-(row["seconds"][kind] + b) for row, b in zip(rows, back, strict=True)], kind="stable")[:ROWS]
    lines = []
    for i in sorted(order.tolist()):
        row, twin = rows[i], [quantity(back[i], "s")] * bool(graph.backward.any())
        out = " ".join(f"{'x'.join(map(str, x['shape'])) or 'scalar'} {x['dtype']}" for x in row["outputs"])
        size = f"{row['parameters']:,.0f}", f"{row['flops'] / 1e9:.4g}", quantity(row["moved"], "B")
        lines.append((row["name"], out, *size, quantity(row["seconds"][kind], "s"), *twin))
    left = len(rows) - len(lines)
    return [head, table(names, lines, left=2), *([f"{left} ops that take less time are not shown"] if left else [])]
