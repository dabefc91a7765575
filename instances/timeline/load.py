"""The timeline of a pipeline in full swing: what each device does for one sample."""

from __future__ import annotations

import numpy as np

from ..partition import PartitionPlan, PartitionProblem
from ..verify import TOLERANCE, Verdict
from .bars import Bar, Row, Timeline, assemble


def load_timeline(problem: PartitionProblem, plan: PartitionPlan, verdict: Verdict) -> Timeline:
    """Draw up `plan`: forward ops, backward ops, then transfers of each device, devices in the order of their stages.

    In which order a device does these for a sample is left open by the model; how long they take together is not.
    """
    graph, cluster, device = problem.graph, problem.cluster, plan.device
    seconds = problem.time()[cluster.type_of[device], np.arange(graph.n_ops)]
    cut = device[graph.source] != device[graph.target]
    ends = np.concatenate([device[graph.source[cut]], device[graph.target[cut]]])
    outputs = np.concatenate([graph.source[cut], graph.source[cut]])
    crossing = np.unique(np.stack([ends, outputs]), axis=1)
    stage = dict(zip(device.tolist(), plan.stage.tolist(), strict=True))
    rows: list[Row] = []
    bars: list[Bar] = []
    busiest = int(verdict.load.argmax())
    for x in sorted(stage, key=stage.__getitem__):
        kind = cluster.device_types[cluster.type_of[x]]
        at = 0.0
        for word, mine in (("forward", ~graph.backward), ("backward", graph.backward)):
            chosen = mine & (device == x)
            if chosen.any():
                lasts, held = float(seconds[chosen].sum()), float(graph.memory[chosen].sum())
                bars.append(Bar(len(rows), word, word, at, at + lasts, held, int(chosen.sum())))
                at += lasts
        moved = crossing[1][crossing[0] == x]
        if verdict.transfer[x] > 0:
            held = float(graph.output_bytes()[moved].sum())
            bars.append(Bar(len(rows), "transfer", "transfer", at, float(verdict.load[x]), held, len(moved)))
        rows.append(Row(f"{x} ({kind.name})", x))
    chain = [i for i, bar in enumerate(bars) if rows[bar.row].device == busiest]
    idle, slack = cluster.n_devices - len(rows), TOLERANCE * float(verdict.load.max())
    return assemble(rows, bars, chain, list(range(len(bars))), verdict, idle, slack)
