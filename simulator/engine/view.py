"""What a policy sees: the state of the cluster and the jobs, to be read and not to be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.workload import Workload

from ..trace.menu import Menu
from .rows import Long, Rows

if TYPE_CHECKING:
    from .state import State


class View:
    """A window on a running simulation: n jobs, m nodes. Its arrays refuse to be written to.

    Attributes:
        workload: the jobs, those that are still to arrive among them; policies that are not clairvoyant look at waiting
            and running ones only, and not at durations.
        fleet: the nodes.
        menu: the degrees of the jobs and their durations.
        speeds: the cost model, `None` if rates are 1.
        rank: of each job by submit time and place in the trace, int64 (n,).
        shared: whether GPUs are told apart and may be shared.
        cost: seconds to restore a job that has run before.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.workload: Workload = state.workload
        self.fleet: Fleet = state.fleet
        self.menu: Menu = state.menu
        self.speeds: SpeedModel | None = state.speeds
        self.shared: bool = state.shared
        self.cost: float = state.cost
        self.rank: Long = _closed(state.rank)
        self._degree, self._rate, self._up = _closed(state.degree), _closed(state.rate), _closed(state.up)

    @property
    def now(self) -> float:
        """Seconds."""
        return self._state.now

    @property
    def waiting(self) -> Long:
        """The jobs that wait, in the order of the last `select`, int64."""
        return _closed(self._state.queue.jobs)

    @property
    def running(self) -> Long:
        """The jobs that run, in no order, int64."""
        return _closed(self._state.running.jobs)

    @property
    def free(self) -> Long:
        """GPUs of each node that nobody holds, 0 where it is down, int64 (m,)."""
        return np.asarray(np.where(self._up, self._state.free[:, 0], 0.0).astype(np.int64))

    @property
    def spare(self) -> FloatArray:
        """GPUs, cores and bytes of each node that nobody holds, 0 where it is down, float64 (m, 3)."""
        return self._state.spare()

    @property
    def up(self) -> NDArray[np.bool_]:
        """Which nodes are up, bool (m,)."""
        return self._up

    @property
    def degree(self) -> Long:
        """GPUs that each running job holds, and that each waiting job asked for, int64 (n,)."""
        return self._degree

    @property
    def rate(self) -> FloatArray:
        """Seconds of `workload.duration` that each running job gets on in a second, float64 (n,)."""
        return self._rate

    def left(self, jobs: Long) -> FloatArray:
        """Return what each job still has to do, in seconds of `workload.duration`."""
        return self._state.left_now(jobs)

    def attained(self, jobs: Long) -> FloatArray:
        """Return the GPU seconds that each job has held so far."""
        return self._state.attained_now(jobs)

    def rows(self, job: int) -> Rows:
        """Return which GPUs a running job holds."""
        return Rows(*(_closed(x) for x in self._state.log.rows(job)))

    def find(self, job: int, degree: int) -> Rows | None:
        """Return where a waiting job would go by default, None if it does not fit."""
        return self._state.find(job, degree)

    def suits(self, job: int, rows: Rows) -> bool:
        """Return whether the nodes of `rows` are up and can run the job's model."""
        state = self._state
        return bool(state.ok[state.kind[job], rows.node].all())

    @property
    def together(self) -> list[tuple[int, ...]]:
        """The sets of jobs that have a GPU in common, each ascending, where GPUs are shared."""
        return self._state.together()

    def holders(self, node: int, gpu: int) -> tuple[int, ...]:
        """Return the jobs on a GPU, where GPUs are shared."""
        return self._state.holders(node, gpu)


def _closed(array: NDArray[Any]) -> NDArray[Any]:
    closed = array.view()
    closed.setflags(write=False)
    return closed
