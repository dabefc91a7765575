"""Learning from the values of all candidates of a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import FloatArray

from ..encode.encoding import Encoding
from ..gnn import collate
from ..training.losses import expected_regret, soft_cross_entropy
from .network import Network
from .player import Steps

_CAP = 4.0
"""Regrets beyond this, in units, are as bad."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """Some states of one instance with what their candidates are worth; a candidates in all.

    Attributes:
        graph: of the instance.
        x: features, float32 (a, f).
        job, option: of each candidate, int64 (a,).
        state: of each candidate, int64 (a,).
        regret: in units, see `Player`, float64 (a,).
        states: how many.
    """

    graph: Encoding
    x: FloatArray
    job: FloatArray
    option: FloatArray
    state: FloatArray
    regret: FloatArray
    states: int


def example_of(graph: Encoding, steps: Steps, which: Sequence[int], regrets: Sequence[FloatArray]) -> Example:
    """Return the example of the states `which` of `steps`, given the regrets of their candidates."""
    jobs, parts = steps.jobs(), [slice(int(steps.count[t])) for t in which]
    return Example(
        graph,
        np.concatenate([steps.x[t, s] for t, s in zip(which, parts, strict=True)]),
        np.concatenate([jobs[t, s] for t, s in zip(which, parts, strict=True)]),
        np.concatenate([steps.cands[t, s, 1] for t, s in zip(which, parts, strict=True)]),
        np.repeat(np.arange(len(which)), steps.count[np.asarray(which)]),
        np.concatenate(regrets),
        len(which),
    )


def joined(examples: Sequence[Example]) -> Example:
    """Return the states of several examples of one instance as one."""
    first = np.concatenate([[0], np.cumsum([e.states for e in examples])])
    x, job, option, regret = (
        np.concatenate([getattr(e, name) for e in examples]) for name in ("x", "job", "option", "regret")
    )
    state = np.concatenate([e.state + first[i] for i, e in enumerate(examples)])
    return Example(examples[0].graph, x, job, option, state, regret, int(first[-1]))


def rated(network: Network, examples: Sequence[Example]) -> tuple[Tensor, Tensor, int]:
    """Return the scores of all candidates of some examples, the state of each, and how many states there are."""
    batch = collate([e.graph for e in examples])
    jobs, options = batch.first["jobs"].tolist(), batch.first["options"].tolist()
    first = np.concatenate([[0], np.cumsum([e.states for e in examples])])
    job = np.concatenate([e.job + jobs[i] for i, e in enumerate(examples)])
    option = np.concatenate([np.where(e.option < 0, -1, e.option + options[i]) for i, e in enumerate(examples)])
    state = np.concatenate([e.state + first[i] for i, e in enumerate(examples)])
    x = np.concatenate([e.x for e in examples])
    scores = network(batch, torch.from_numpy(x), torch.from_numpy(job), torch.from_numpy(option))
    return scores, torch.from_numpy(state), int(first[-1])


def loss_of(network: Network, examples: Sequence[Example], *, one_label: bool = False) -> Tensor:
    """Return what a choice drawn from the network costs on average: the gradient is that of the policy's value.

    With `one_label`, the cross-entropy to the best candidates alone, as if nothing were known of the others.
    """
    scores, state, n = rated(network, examples)
    regret = torch.from_numpy(np.concatenate([e.regret for e in examples])).float()
    if one_label:
        return soft_cross_entropy(scores, state, regret, n, temperature=1e-4)
    return expected_regret(scores, state, regret, n, cap=_CAP)
