"""How the schedule policy is trained, loaded and judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..policy.recipe import Recipe, start
from ..training.stages import Stage
from .settings import Settings

if TYPE_CHECKING:
    from ..training.checkpoint import Tensors

_RL = 100_000
"""Where the seeds of the instances of the second stage begin among those of training."""
_NOISE = 0.3
"""Of the scores on the policy's way, so that it meets what it would seldom choose."""


def stages(settings: Settings, device: str, seed: int) -> list[Stage]:
    """Return imitation of what all candidates are worth, then rounds of policy gradient; either may be left out."""
    made = []
    every, rounds = settings.validate_every, settings.rl_rounds
    if settings.imitation_updates:
        made.append(Stage("imitation", _imitation(settings, seed), settings.imitation_updates, every))
    if settings.rl_updates:
        made += [
            Stage(f"rl{i + 1}", _gradient(settings, seed, i), max(settings.rl_updates // rounds, 1), every)
            for i in range(rounds)
        ]
    return made


def _imitation(settings: Settings, seed: int) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        import numpy as np

        from .builder import no_net
        from .examples import builder_of, by_rollouts, by_solver

        rng, none, examples = np.random.default_rng([seed, 1]), no_net(), []
        for i in range(settings.instances):
            builder = builder_of("train", i, int(rng.integers(settings.least, settings.most + 1)))
            graph, states = builder.graph(), max(1, round(settings.share * builder.p.n))
            examples.append(by_rollouts(builder, graph, none, none, rng, states=states))
            if i < settings.exact and builder.p.n <= 20:
                examples.append(by_solver(builder, graph, none, rng, states=2 * states, seconds=settings.solve_seconds))
        network = _start(settings, seed, before)
        return _learner(network, examples, settings, settings.imitation_updates, seed, settings.imitation_rate)

    return make


def _gradient(settings: Settings, seed: int, number: int) -> Callable[[Tensors | None], Any]:
    """Walk by the policy so far, and label by its own rollouts: the loss is then its value's gradient at the start."""

    def make(before: Tensors | None) -> Any:
        import numpy as np

        from .examples import builder_of, by_rollouts
        from .policy import compiled

        network, rng, examples = _start(settings, seed, before), np.random.default_rng([seed, 3, number]), []
        for i in range(settings.rl_instances):
            index = _RL + number * settings.rl_instances + i
            builder = builder_of("train", index, int(rng.integers(settings.least, settings.rl_most + 1)))
            graph, states = builder.graph(), max(1, round(settings.rl_share * builder.p.n))
            net = compiled(network, [graph])[0]
            examples.append(by_rollouts(builder, graph, net, net, rng, states=states, noise=_NOISE))
        updates = max(settings.rl_updates // settings.rl_rounds, 1)
        return _learner(network, examples, settings, updates, seed + 1 + number, settings.rl_rate)

    return make


def _learner(network: Any, examples: list[Any], settings: Settings, updates: int, seed: int, rate: float) -> Any:
    from ..training.imitation import Imitation, minibatches
    from .examples import Validation, builder_of, loss_of

    draw = minibatches(
        [x for x in examples if x is not None],
        lambda batch: loss_of(network, batch, one_label=not settings.all_actions),
        settings.minibatch,
    )
    # three sizes, so that what is chosen is good at all of them
    judged = [builder_of("validation", i, (20, 20, 60)[i % 3]) for i in range(settings.validation)]
    return Imitation(network, draw, Validation(judged), rate=rate, updates=updates, seed=seed)


def _start(settings: Settings, seed: int, before: Tensors | None) -> Any:
    import torch

    from .policy import network_of

    def make() -> Any:
        network = network_of(settings)
        # with zeros nothing but the last layer would learn at first
        torch.nn.init.normal_(network.last.weight, std=0.02)
        return network

    return start(make, seed, before)


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import SchedulePolicy

    return SchedulePolicy.load(path)


def evaluate(policy: Any, seeds: Iterable[int], *, jobs: int = 20, seconds: float = 5.0) -> list[dict[str, Any]]:
    """Return a row a method and instance: gap to the best plan known, milliseconds.

    Args:
        policy: the learned one.
        seeds: of instances of the family moldable, counted from the first test seed.
        jobs: at most, of each.
        seconds: for the exact solver.
    """
    from gangplan.solvers.schedule.decode import Decoder
    from gangplan.solvers.schedule.lists import base_of

    from .examples import builder_of, solve
    from .policy import SAMPLES

    rows = []
    for i in seeds:
        p = builder_of("test", i, jobs).p
        found: list[tuple[str, float, float]] = []

        def clocked(name: str, work: Callable[[], float], to: list[tuple[str, float, float]] = found) -> None:
            started = time.perf_counter()
            to.append((name, work(), time.perf_counter() - started))

        run = solve(p.problem, seconds)
        if run.objective is None:
            continue
        best, proved = run.objective, run.bound is not None and run.objective <= run.bound * (1 + 1e-6)
        clocked("greedy", lambda p=p: policy.schedule(p)[0])  # type: ignore[misc]
        clocked(f"{SAMPLES} schedules", lambda p=p: policy.schedule(p, SAMPLES)[0])  # type: ignore[misc]
        clocked("lists", lambda p=p: base_of(Decoder(p)).cost)  # type: ignore[misc]
        rows += [
            {"seed": i, "method": name, "gap": cost / best - 1, "proved": proved, "milliseconds": 1e3 * spent}
            for name, cost, spent in [("exact", best, run.seconds()), *found]
        ]
    return rows


def export(policy: Any, path: Path) -> list[Path]:
    """Write a policy as ONNX."""
    from .onnx import export as write

    return write(policy, path)


RECIPE = Recipe(
    name="schedule",
    about="which job of a queue is placed next, and on how many GPUs",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    export=export,
    data="generated instances of the family moldable; values by rollouts, and exact schedules of some",
    seeds=lambda settings, seed: {
        "training": f"train, from 0 and from {_RL}",
        "validation": f"validation, the first {settings.validation}",
        "run": seed,
    },
)
