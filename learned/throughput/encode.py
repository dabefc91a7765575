"""A problem as the network sees it: groups, the outputs they share, kinds of devices, and PipeDream's plan.

Numbers are shares of an even load, of memory, of the whole order: they have neither units nor sizes nor names.
"""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.partition.throughput.orders import Ints, ragged
from gangplan.solvers.partition.throughput.polish import stage_of

from ..encode.encoding import Encoding, log_over, over
from .decode import Decoder


def encode(made: Decoder, *, messages: bool = True) -> Encoding:
    """Encode a problem with the plan that zero scores give.

    Without `messages` there are the nodes of ``groups`` and ``problem`` alone, and no relations. With them, types are
    ``groups``, ``nets`` (outputs that several groups touch), ``kinds`` (of devices), ``stages`` (of the plan; there
    is one without groups if there is no plan) and ``problem``. Relations, each with its reverse: groups ``feed``
    groups, groups ``touch`` nets, groups ``run`` on kinds, groups are ``in`` stages, stages come ``before`` stages
    and are ``of`` kinds, groups come ``before`` groups in PipeDream's order.
    """
    q, encoding = made.q, Encoding()
    n, devices = q.n_groups, max(int(q.counts.sum()), 1)
    even = max(float(q.work.sum()) / devices, 1e-30)
    view = _View(made, even)
    into, out = (np.array([len(x) for x in side]) for side in q.neighbours)
    (sources, targets), there, back = q.neighbours, made.order, made.order[::-1]
    gone, came = _longest(sources, q.work, there), _longest(targets, q.work, back)
    hops, hops_after = _longest(sources, np.ones(n), there), _longest(targets, np.ones(n), back)
    path, longest = max(float((gone + came - q.work).max()), 1e-30), max(float((hops + hops_after).max()) - 1, 1.0)
    columns = {
        "load": over(q.work, even), "load_log": log_over(q.work * n, even * devices),
        "tolls": over(view.toll, even), "tolls_log": log_over(view.toll * n, even * devices),
        "memory": over(q.memory, view.room), "place": made.place,
        "before": gone / path, "after": came / path, "depth": hops / longest, "height": hops_after / longest,
        "into": np.log1p(into), "out": np.log1p(out),
        "stage": view.stage / view.k, "within": view.within, "stage_load": view.relative[view.stage],
        "stage_before": view.beside(-1)[view.stage], "stage_after": view.beside(1)[view.stage],
        "busiest": view.relative[view.stage] >= 1 - 1e-9,
        "cut_here": over(view.cut_toll, even), "low": (view.stage - view.low) / view.k,
        "high": (view.high - view.stage) / view.k, "free_low": view.stage > view.low,
        "free_high": view.high > view.stage,
    }  # fmt: skip
    encoding.add("groups", n, columns)
    encoding.add("problem", 1, _about(made, view))
    if messages:
        _add_graph(encoding, made, view, even)
    return encoding


def _about(made: Decoder, view: _View) -> dict[str, FloatArray]:
    q, base, devices = made.q, made.base, max(int(made.q.counts.sum()), 1)
    tight = float(q.capacity[q.counts > 0].max())
    found = {
        "groups_per_device": np.log(q.n_groups / devices), "devices": np.log(devices),
        "moving": log_over(float(view.cost.sum()), float(q.work.sum())),
        "memory": over(float(q.memory.sum()), tight * devices), "planned": base is not None,
        "over_floor": 0.0 if base is None else min(base.load / max(made.floor, 1e-30) - 1, 10.0),
    }  # fmt: skip
    return {name: np.asarray(value, dtype=float) for name, value in found.items()}


def _add_graph(encoding: Encoding, made: Decoder, view: _View, even: float) -> None:
    """Add what groups tell one another over: outputs, kinds, stages, and the order."""
    q, cost = made.q, view.cost
    n, devices = q.n_groups, max(int(q.counts.sum()), 1)
    pins = [sorted(members) for members, _ in q.nets]
    member, first = ragged(pins)
    net = np.repeat(np.arange(len(pins)), np.diff(first))
    encoding.add(
        "nets", len(pins),
        {
            "cost": over(cost, even), "cost_log": log_over(cost * n, even * devices),
            "pins": np.log1p(np.diff(first)), "stages": np.log1p(view.spans), "cut": view.spans > 1,
            "length": view.length,
        },
    )  # fmt: skip
    offset = made.place[member] - (view.start[net] if len(net) else 0.0)
    encoding.join(("groups", "touch", "nets"), member, net, {"first": offset <= 0, "offset": offset})
    t, g = np.nonzero(np.isfinite(q.time) & (q.counts > 0)[:, None])
    encoding.add(
        "kinds", len(q.time),
        {
            "devices": q.counts / devices, "speed": q.speed, "host": q.host, "unlimited": ~np.isfinite(q.capacity),
            "memory": over(np.where(np.isfinite(q.capacity), q.capacity, 0.0), float(q.memory.sum()) / devices),
        },
    )  # fmt: skip
    encoding.join(("groups", "run", "kinds"), g, t, {"load": over(q.time[t, g], even)})
    encoding.add(
        "stages", view.k,
        {
            "load": over(view.load, even), "relative": view.relative, "tolls": over(view.tolls, even),
            "memory": view.full, "place": (np.arange(view.k) + 0.5) / view.k,
        },
    )  # fmt: skip
    encoding.join(("groups", "in", "stages"), np.arange(n), view.stage)
    encoding.join(("stages", "before", "stages"), np.arange(view.k - 1), np.arange(1, view.k))
    encoding.join(("stages", "of", "kinds"), np.arange(view.k), view.kinds)
    edges = np.array(q.edges, dtype=np.int64).reshape(-1, 2)
    encoding.join(
        ("groups", "feed", "groups"), edges[:, 0], edges[:, 1],
        {"apart": made.place[edges[:, 1]] - made.place[edges[:, 0]]},
    )  # fmt: skip
    encoding.join(("groups", "before", "groups"), made.order[:-1], made.order[1:])


class _View:
    """PipeDream's plan as arrays; the letters are those of `encode`."""

    def __init__(self, made: Decoder, even: float) -> None:
        q, base = made.q, made.base
        n = q.n_groups
        usual = int(np.argmax(q.counts > 0))
        stages = [(usual, np.arange(n))] if base is None else base.stages
        self.k, self.kinds = len(stages), np.array([t for t, _ in stages])
        self.stage: Ints = stage_of(stages, n)
        self.cost = np.array([c for _, c in q.nets])
        members, first = ragged([sorted(pins) for pins, _ in q.nets])
        sizes = np.diff(first)
        net = np.repeat(np.arange(len(sizes)), sizes)
        self.toll = np.bincount(members, weights=self.cost[net], minlength=n) if len(net) else np.zeros(n)
        some = len(sizes) > 0
        at = self.stage[members]
        self.spans = np.maximum.reduceat(at, first[:-1]) - np.minimum.reduceat(at, first[:-1]) + 1 if some else at
        place = made.place[members]
        self.start = np.minimum.reduceat(place, first[:-1]) if some else place
        self.length = np.maximum.reduceat(place, first[:-1]) - self.start if some else place
        cut = self.cost * (self.spans > 1) if some else self.cost
        self.cut_toll = np.bincount(members, weights=cut[net], minlength=n) if some else np.zeros(n)
        time = np.where(np.isfinite(q.time), q.time, 0.0)[self.kinds[self.stage], np.arange(n)]
        compute = np.bincount(self.stage, weights=time, minlength=self.k)
        pairs = np.unique(np.stack([net, at]), axis=1) if some else np.zeros((2, 0), dtype=np.int64)
        self.tolls = np.bincount(pairs[1], weights=cut[pairs[0]], minlength=self.k) * ~q.host[self.kinds]
        self.load = compute + self.tolls
        self.relative = over(self.load, float(self.load.max()))
        room = np.where(np.isfinite(q.capacity), q.capacity, np.inf)
        self.room = float(room[q.counts > 0].min())
        self.full = over(np.bincount(self.stage, weights=q.memory, minlength=self.k), room[self.kinds])
        done = np.zeros(n)
        done[made.order] = np.cumsum(q.work[made.order]) - q.work[made.order] / 2
        ends = np.concatenate([[0], np.cumsum(np.bincount(self.stage, weights=q.work, minlength=self.k))])
        size = np.maximum(np.diff(ends), 1e-30)
        self.within = np.clip((done - ends[self.stage]) / size[self.stage], 0, 1)
        before, after = q.neighbours
        self.low = np.array([max((int(self.stage[a]) for a in x), default=0) for x in before])
        self.high = np.array([min((int(self.stage[b]) for b in x), default=self.k - 1) for x in after])

    def beside(self, step: int) -> FloatArray:
        """Return how busy the stage before (-1) or after (1) each is, 1 at the ends."""
        padded = np.concatenate([[1.0], self.relative, [1.0]])
        return np.asarray(padded[1 + step : len(padded) - 1 + step])


def _longest(sources: list[list[int]], weight: FloatArray, order: Ints) -> FloatArray:
    """Return the weight of the heaviest path that ends at each group, itself included."""
    found: list[float] = [0.0] * len(weight)
    own = weight.tolist()
    for g in order.tolist():
        found[g] = own[g] + max((found[a] for a in sources[g]), default=0.0)
    return np.array(found)
