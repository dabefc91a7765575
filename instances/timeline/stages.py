"""The timeline of replicated stages: what a device of each does for one sample."""

from __future__ import annotations

import numpy as np

from ..partition import StagesPlan, StagesProblem
from ..verify import TOLERANCE, Verdict
from .bars import Bar, Row, Timeline, assemble


def stages_timeline(problem: StagesProblem, plan: StagesPlan, verdict: Verdict) -> Timeline:
    """Draw up `plan`: a row a stage, with its forward ops, backward ops and synchronisation, divided by its replicas.

    Where moves between stages set the pace there is one more row, for the slowest of them.
    """
    graph, objective = problem.graph, verdict.objective or 0.0
    kind = problem.cluster.device_types[problem.kind].name
    row = np.searchsorted(problem.options().degree, plan.degree)[plan.stage]
    seconds = problem.seconds()[row, np.arange(graph.n_ops)]
    rows: list[Row] = []
    bars: list[Bar] = []
    chain: list[int] = []
    for s, degree in enumerate(plan.degree.tolist()):
        serving = np.flatnonzero(plan.serves == s)
        d, mine = int(serving[0]), plan.stage == s
        load, sync = float(verdict.load[d]), float(verdict.transfer[d])
        each = (load - sync) / (float(seconds[mine].sum()) or 1.0)
        begun, at = len(bars), 0.0
        for word, chosen in (("forward", mine & ~graph.backward), ("backward", mine & graph.backward)):
            if chosen.any():
                lasts, held = each * float(seconds[chosen].sum()), float(graph.memory[chosen].sum())
                bars.append(Bar(len(rows), word, word, at, at + lasts, held, int(chosen.sum())))
                at += lasts
        if sync > 0:
            weights = float(graph.parameter_bytes[mine].sum())
            bars.append(Bar(len(rows), "transfer", "synchronisation", at, load, weights))
        if not chain and load >= objective * (1 - TOLERANCE):
            chain = list(range(begun, len(bars)))
        replicas = len(serving) // degree
        shared = f" of {degree}" if degree > 1 else ""
        rows.append(Row(f"stage {s}: {replicas}{shared} \u00d7 {kind}", d))
    if not chain:
        chain = [len(bars)]
        bars.append(Bar(len(rows), "transfer", "slowest move between stages", 0.0, objective))
        rows.append(Row("moves", link=True))
    idle = int((plan.serves < 0).sum())
    return assemble(rows, bars, chain, list(range(len(bars))), verdict, idle, TOLERANCE * objective)
