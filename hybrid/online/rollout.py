"""What is there played through, compiled: each order's mean time, counted in GPUs, as if jobs could always be moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .settings import DEAR


@kernel
def rollout(gpus: int, left: Any, need: Any, price: Any, running: Any, reserve: bool, order: float) -> Any:
    """Return in how many seconds each job is done if nobody else comes, 0 if it never has room, float64 (n,).

    Whenever a job is done, as many jobs as have room together run, those first that have least left times their GPUs
    to the power `order`. A running job keeps its GPUs unless it has more left than another and `DEAR` times its price.

    Args:
        gpus: of the cluster.
        left: seconds of each job on its GPUs, float64 (n,).
        need: GPUs of each job, int64 (n,).
        price: seconds that a stop costs each job, infinite if it may not be stopped, float64 (n,).
        running: which jobs run, bool (n,).
        reserve: whether jobs that may not be stopped start only if they do not delay the first that does not fit.
        order: the exponent.
    """
    n = len(left)
    rest, runs, weight = left.copy(), running.copy(), need.astype(np.float64) ** order
    jobs, count = np.arange(n), n
    key, done = np.empty(n), np.zeros(n)
    time = 0.0
    while count:
        for i in range(count):
            j = jobs[i]
            key[i] = rest[j] * weight[j]
            if runs[j]:
                key[i] = max(rest[j] - DEAR * price[j], 0.0) * weight[j] if price[j] < np.inf else -1.0
        room, step = gpus, np.inf
        shadow, spare = np.inf, gpus  # when the first that does not fit will, and the GPUs that it leaves then
        for i in np.argsort(key[:count]):
            j = jobs[i]
            late = not runs[j] and price[j] == np.inf and rest[j] > shadow
            if need[j] <= room and not (late and need[j] > spare):
                room -= need[j]
                runs[j] = True
                step = min(step, rest[j])
                if late:
                    spare -= need[j]
            elif runs[j]:
                runs[j] = False
                rest[j] += price[j]
            elif shadow == np.inf and reserve:
                shadow, spare = _reserve(need[j], room, jobs[:count], runs, rest, need)
        if step == np.inf:
            break
        time += step
        kept = 0
        for i in range(count):
            j = jobs[i]
            if runs[j]:
                rest[j] -= step
                if rest[j] <= 1e-6:
                    done[j] = time
                    continue
            jobs[kept] = j
            kept += 1
        count = kept
    return done


@kernel
def _reserve(asked: int, room: int, jobs: Any, runs: Any, rest: Any, need: Any) -> Any:
    """Return in how many seconds `asked` GPUs are free if nobody else starts, and how many more there are then."""
    for j in jobs[np.argsort(rest[jobs])]:
        if runs[j]:
            room += need[j]
            if room >= asked:
                return rest[j], room - asked
    return np.inf, room
