"""Check the arguments of `solve`; what does not fit is named, with what to write instead."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

from gangplan.instances.arrays import require_counts, require_number
from gangplan.instances.errors import InstanceError, did_you_mean
from gangplan.instances.kinds import GRAPHS, PROBLEMS, with_objective
from gangplan.solvers.run import Callback


def refuse(solve: Callable[..., Any], unnamed: Sequence[object], unknown: Mapping[str, object]) -> None:
    """Raise because of arguments without a name, or with one that `solve` does not know, if there are any."""
    known = [name for name, x in signature(solve).parameters.items() if x.kind is Parameter.KEYWORD_ONLY]
    names = f"its options are {', '.join(known)}"
    if unnamed:
        raise InstanceError("solve", f"{unnamed[0]!r} has no name: write workers={unnamed[0]!r}, or another; {names}")
    for name, value in unknown.items():
        if name.rstrip("s") in ("device", "cluster", "memory", "bandwidth", "variant"):
            field = "devices" if name == "device" else name
            words = f"gangplan.generate(kind, {field}=...), gangplan.read(file, {field}=...)"
            raise InstanceError(name, f"{value!r} is said where the problem is made: {words}; of solve, {names}")
        raise InstanceError(name, f"{value!r} does not apply to solve{did_you_mean(name, known)}; {names}")


def checked(
    instance: Any,
    objective: str | None,
    time_limit: float,
    seed: int,
    workers: int,
    gap: float,
    callbacks: Sequence[Callback],
) -> Any:
    """Return the problem with the objective that was asked for.

    Raises:
        InstanceError: naming the argument that does not fit.
    """
    own: Any = getattr(instance, "objective", None)
    if own not in PROBLEMS or not isinstance(instance, PROBLEMS[own]):
        hint = f"; write gangplan.read({str(instance)!r})" if isinstance(instance, str | os.PathLike) else ""
        raise InstanceError("instance", f"{type(instance).__name__} is no problem that gangplan knows{hint}")
    require_number(time_limit, "time_limit", positive=True)
    require_number(seed, "seed", whole=True, most=2**31 - 1)
    require_counts(workers=workers)
    require_number(gap, "gap", below=1)
    if not isinstance(callbacks, Sequence):
        raise InstanceError("callbacks", f"{callbacks!r} is not a sequence of functions")
    for i, callback in enumerate(callbacks):
        if not callable(callback):
            raise InstanceError(f"callbacks[{i}]", f"{callback!r} is not a function")
    if objective is not None and own in GRAPHS:
        return with_objective(instance, objective)
    if objective not in (None, own):
        raise InstanceError("objective", f"{objective!r} is not that of {type(instance).__name__}")
    return instance
