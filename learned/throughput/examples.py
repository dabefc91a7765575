"""What the policy learns from: an instance with good plans of it, from labels or from its own samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import PartitionProblem
from gangplan.instances.arrays import FloatArray
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers.partition.throughput.orders import Ints
from gangplan.solvers.partition.throughput.polish import stage_of

from ..encode.encoding import Encoding
from ..labels import Configuration, collect, read_labels
from .decode import Decoder, Draft, decoder
from .encode import encode
from .settings import Settings

MOST_PLANS, MOST_JOINED, _NEAR = 12, 40, 0.02
"""Plans of an example; plans that the recurrence is given at once; by what share a plan may be above the best."""
_SEARCHED = 20_000_000
"""Where the seeds begin, within the split for training, of instances that are searched: no label has them."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """An instance and what is known of it.

    Attributes:
        decoder: of the instance.
        encoding: of it.
        stages: of each group in each good plan, int64 (P, G); none if nothing is known.
        regrets: of the plans, shares of the best, float64 (P,).
    """

    decoder: Decoder
    encoding: Encoding
    stages: Ints
    regrets: FloatArray


def example(problem: PartitionProblem, *, messages: bool = True) -> Example | None:
    """Return an instance about which nothing is known, None if it has no plan along PipeDream's order; see `encode`."""
    made = decoder(problem)
    if made is None or made.base is None:
        return None
    return Example(made, encode(made, messages=messages), np.zeros((0, made.q.n_groups), dtype=np.int64), np.zeros(0))


def labelled(settings: Settings) -> list[Example]:
    """Return the labelled instances, labelling what the folder lacks."""
    wanted = Configuration(
        "throughput", settings.families, settings.label_size, states=0, time_limit=settings.label_seconds,
        shard=settings.label_shard,
    )  # fmt: skip
    folder = Path(settings.labels)
    collect(folder, wanted, settings.label_shards)
    found = []
    for one in read_labels(folder):
        problem: Any = one.problem
        known = example(problem, messages=settings.rounds > 0) if one.plans else None
        if known is None:
            continue
        first = np.unique(known.decoder.q.group_of, return_index=True)[1]
        best = min(objective for _, objective in one.plans)
        plans = sorted(one.plans, key=lambda pair: pair[1])[: MOST_PLANS if settings.near else 1]
        found.append(
            Example(
                known.decoder, known.encoding,
                np.array([plan.stage[first] for plan, _ in plans], dtype=np.int64),
                np.array([objective / best - 1 for _, objective in plans]),
            )
        )  # fmt: skip
    return found


def searched(settings: Settings) -> Iterator[Example]:
    """Yield instances with the best plans that the decoder finds from random scores: many, where a proof takes long."""
    for at, size in enumerate(settings.search_sizes):
        begin = _SEARCHED + at * settings.searched
        for i, one in enumerate(
            drawn(settings.families, [size], settings.searched, "train", begin, messages=settings.rounds > 0)
        ):
            rng = np.random.default_rng(begin + i)
            n = one.decoder.q.n_groups
            found = [x for _ in range(settings.search_samples) if (x := one.decoder.decode(rng.standard_normal(n)))]
            found += [x] if (x := one.decoder.join(found[:MOST_JOINED])) is not None else []
            yield taught(one, found, settings)


def taught(one: Example, drafts: Sequence[Draft], settings: Settings) -> Example:
    """Return an instance with the best of some plans of it, each different, none much worse than the best."""
    n = one.decoder.q.n_groups
    known = {stage_of(x.stages, n).tobytes(): x for x in sorted(drafts, key=lambda x: -x.load)}
    best = sorted(known.values(), key=lambda x: x.load)[: MOST_PLANS if settings.near else 1]
    best = [x for x in best if x.load <= (1 + _NEAR) * best[0].load]
    return Example(
        one.decoder, one.encoding, np.array([stage_of(x.stages, n) for x in best], dtype=np.int64).reshape(-1, n),
        np.array([x.load / best[0].load - 1 for x in best]),
    )  # fmt: skip


def drawn(
    families: Sequence[str], sizes: Sequence[int], count: int, split: str, begin: int = 0, *, messages: bool = True
) -> Iterator[Example]:
    """Yield instances of seeds from `begin` on, `count` of each size, families in turn."""
    for at, size in enumerate(sizes):
        for i in range(count):
            seed = seed_of(split, begin + at * count + i)
            found = example(make("throughput", families[i % len(families)], seed, size), messages=messages)
            if found is not None:
                yield found
