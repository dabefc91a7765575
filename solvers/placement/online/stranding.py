"""Stranding: descent on the GPUs that no task will use once a node is full, and what a part of a GPU is worth."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .fgd import Gradient, NodeFragments, Potential, TaskMix
from .state import GPU, Long, Slots

GRID = 1000
"""Steps of a GPU; shares are rounded up to whole steps."""

ROUNDS = 500
"""Cuts added at most; prices are usable after any number of them."""


class Cuts:
    """The worth of free shares, in GPUs, for a mix of tasks that share GPUs.

    Cutting GPUs into the shares of the mix with as few GPUs as possible is a linear programme over cuts. Its dual gives
    each share a price: what the GPUs it takes, waste and all, cost. A free share is worth the best choice of tasks that
    fit in it, 1 at most; what is worth less than it is large is waste. With many tasks of 0.81, a free 0.19 is worth
    nothing, and so are tasks of 0.16: they go where nothing else can.

    Attributes:
        worth: float64 (GRID + 1,), of a free share of so many steps.
    """

    def __init__(self, mix: TaskMix) -> None:
        """Price the shares of a mix."""
        shares: dict[int, float] = {}
        for kind, p in zip(mix.needs, mix.share.tolist(), strict=True):
            if kind.grants and not kind.whole:
                steps = -(-kind.share * GRID // GPU)
                shares[steps] = shares.get(steps, 0.0) + p
        self.worth = _worth(np.array(sorted(shares)), np.array([shares[s] for s in sorted(shares)]))

    def __call__(self, free: Long) -> FloatArray:
        """Return what is wasted of the free shares of each node, in GPUs, float64 (k,); `free` is int64 (k, g)."""
        steps = np.maximum(free, 0) * GRID // GPU
        return np.asarray((steps / GRID - self.worth[steps]).sum(axis=1))


def _worth(sizes: Long, amounts: FloatArray) -> FloatArray:
    from ortools.linear_solver import pywraplp

    if not len(sizes):
        return np.where(np.arange(GRID + 1) < GRID, 0.0, 1.0)
    solver = pywraplp.Solver.CreateSolver("GLOP")
    demand = [solver.Constraint(float(p), solver.infinity()) for p in amounts / amounts.sum()]
    objective = solver.Objective()

    def add(cut: list[int]) -> None:
        used = solver.NumVar(0.0, solver.infinity(), "")
        objective.SetCoefficient(used, 1.0)
        for i in set(cut):
            demand[i].SetCoefficient(used, cut.count(i))

    for i, size in enumerate(sizes.tolist()):
        add([i] * (GRID // size))
    worth = np.zeros(GRID + 1)
    for _ in range(ROUNDS):
        solver.Solve()
        worth, cut = fill(sizes.tolist(), [row.dual_value() for row in demand])
        if worth[GRID] <= 1 + 1e-6:
            break
        add(cut)
    worth = np.minimum(worth, 1.0)
    worth[GRID] = 1.0
    return worth


def fill(sizes: list[int], prices: list[float]) -> tuple[FloatArray, list[int]]:
    """Return the most expensive filling of each free share, and the shares that fill a whole GPU so."""
    worth, last = [0.0] * (GRID + 1), [-1] * (GRID + 1)
    for room in range(1, GRID + 1):
        best, which = worth[room - 1], -1
        for i, size in enumerate(sizes):
            if size > room:
                break
            if worth[room - size] + prices[i] > best + 1e-12:
                best, which = worth[room - size] + prices[i], i
        worth[room], last[room] = best, which
    cut, room = [], GRID
    while room:
        if last[room] < 0:
            room -= 1
        else:
            cut.append(last[room])
            room -= sizes[last[room]]
    return np.array(worth), cut


WEIGHT = 20.0
"""Of uneven cores, in GPUs wasted by cuts. From 10 to 30 results differ little; none of it where cores suffice."""


class Stranding(Gradient):
    """Take the node and GPU where the GPUs to be stranded grow least: cut to waste, without cores or memory, or split.

    FGD asks whether one more task fits a node. A node with eight idle GPUs and cores for two tasks passes, so FGD
    spends cores where they are scarce; and it does not ask what is left of a GPU after the tasks that fit. The
    potential here is what is wasted of free shares (`Cuts`), plus the GPUs that the cores and the memory left will not
    feed (`Shortage`), plus a little of FGD's own fragmentation, which keeps GPUs together for tasks with several: there
    kinds of task count by the GPUs they ask for, not by how many come. Where tasks without GPUs want more cores than
    GPUs leave over, cores are also kept even (`Unevenness`), and types that are asked for most are kept for tasks that
    accept nothing else (`wantedness`). Everything follows from the mix; the weights were tuned on seeds that no
    published figure uses.
    """

    def __init__(self, mix: TaskMix, *, shortage: float = 0.5, fragments: float = 0.05, types: float = 0.3) -> None:
        """Expect tasks of `mix`; weights, in GPUs wasted by cuts, of `Shortage`, fragmentation and `wantedness`."""
        super().__init__()
        self.mix, self.shortage, self.fragments, self.types = mix, shortage, fragments, types

    def potential(self, state: Slots) -> Potential:
        """Return what will be stranded."""
        cuts, fragmentation = Cuts(self.mix), NodeFragments(self.mix.by_gpus(), state)
        cores, memories = Shortage(self.mix, state, "cpu"), Shortage(self.mix, state, "memory")
        uneven, wanted = Unevenness(self.mix, state), wantedness(self.mix, state)

        def stranded(hardware: Long, cpu: Long, memory: Long, free: Long) -> FloatArray:
            gpus = np.maximum(free, 0).sum(axis=1) / GPU
            short = cores(hardware, cpu, gpus) + memories(hardware, memory, gpus)
            fragments = fragmentation(hardware, cpu, memory, free)
            taken = state.specs[hardware, 1] - gpus
            stranding = cuts(free) + self.shortage * short + self.fragments * fragments + uneven(hardware, cpu)
            return np.asarray(stranding + self.types * wanted[hardware] * taken)

        return stranded


def wantedness(mix: TaskMix, state: Slots) -> FloatArray:
    """Return how many GPUs each hardware is asked for, per GPU that it has, float64 (len(specs),), 0 for the least.

    When the mix has asked for as many GPUs as there are, and each kind of task is spread over all GPUs of the types
    that it accepts. Tasks that accept any type count alike everywhere; with no others all is 0.
    """
    has = state.count * state.specs[:, 1].astype(np.float64)
    asks = np.array([k.gpu / GPU for k in mix.needs]) * mix.share
    found = np.zeros(len(has))
    for kind, amount in zip(mix.needs, asks.tolist(), strict=True):
        accepted = state.accepts(kind) & (has > 0)
        if kind.gpu_types and accepted.any():
            found[accepted] += amount / has[accepted].sum()
    found *= has.sum() / max(float(asks.sum()), 1e-300)
    there = has > 0
    return np.where(there, found - found[there].min(initial=np.inf), 0.0)


class Shortage:
    """GPUs of a node that stay idle for want of a resource, if tasks of a mix fill the others.

    Tasks with GPUs need r of the resource a GPU on average. Filling G GPUs takes r G, give or take: the variance of
    (need of a task - r its GPUs), summed over the tasks that G GPUs hold, is v G. With R left, G - R / r GPUs are short
    on average, with variance s^2 G, s^2 = v / r^2, and the expectation of what is short, which is never negative, is at
    most (x + sqrt(x^2 + s^2 G)) / 2 with x = G - R / r (Scarf, "A min-max solution of an inventory problem", 1958). The
    bound, tight for the worst distribution with this mean and variance, is the measure. r and v are of the tasks that
    accept the node's type of GPU.
    """

    def __init__(self, mix: TaskMix, state: Slots, resource: str) -> None:
        """Learn r and v for each hardware of a cluster; `resource` is ``cpu`` or ``memory``."""
        gpus = np.array([k.gpu / GPU for k in mix.needs])
        amount = np.array([getattr(k, resource) for k in mix.needs], dtype=np.float64)
        accepted = np.stack([state.accepts(k) for k in mix.needs], axis=1) * (mix.share * (gpus > 0))
        asked = np.maximum(accepted @ gpus, 1e-12)
        self.rate = accepted @ amount / asked
        spread = (amount - self.rate[:, None] * gpus) ** 2
        self.variance = (accepted * spread).sum(axis=1) / asked / np.maximum(self.rate, 1e-12) ** 2

    def __call__(self, hardware: Long, left: Long, gpus: FloatArray) -> FloatArray:
        """Return the GPUs short on each node, float64 (k,); hardware: rows of `Slots.specs`; left: of the resource."""
        rate = self.rate[hardware]
        short = gpus - left / np.maximum(rate, 1e-12)
        bound = 0.5 * (short + np.sqrt(short**2 + self.variance[hardware] * gpus))
        return np.where(rate > 0, bound, 0.0)


class Unevenness:
    """How unevenly cores are taken, where there are not enough for all; nothing where there are.

    A task that fits somewhere must be placed, so tasks without GPUs take cores until they fit nowhere. If they want
    more than GPUs leave over, GPUs starve. Where cores are free in even parts, large tasks are the first that fit
    nowhere, most of them without GPUs, and small tasks with GPUs still do. With R cores left of which a GPU needs r on
    average, and M the most GPUs that the cores of any node feed, the measure of a node with GPUs is
    `WEIGHT` (M - R / r)^2 / M.
    """

    def __init__(self, mix: TaskMix, state: Slots) -> None:
        """Compare what the mix needs, by the time it asks for all GPUs, with what the cluster has."""
        gpus = np.array([k.gpu / GPU for k in mix.needs]) * mix.share
        cores = np.array([k.cpu for k in mix.needs], dtype=np.float64) * mix.share
        asked = max(float(gpus.sum()), 1e-12)
        self.rate = max(float(cores[gpus > 0].sum()) / asked, 1e-12)
        has = state.specs[:, 1:3].astype(np.float64)
        spare = float(state.count @ np.maximum(has[:, 1] - self.rate * has[:, 0], 0))
        short = float(cores[gpus == 0].sum()) / asked * float(state.count @ has[:, 0]) > spare
        self.most = max(float(has[:, 1].max()) / self.rate, 1e-12)
        self.weight = np.where((has[:, 0] > 0) & short, WEIGHT, 0.0)

    def __call__(self, hardware: Long, cpu: Long) -> FloatArray:
        """Return the measure of each node, float64 (k,), see `Shortage`."""
        return np.asarray(self.weight[hardware] * (self.most - cpu / self.rate) ** 2 / self.most)
