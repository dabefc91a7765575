"""The verifier of one stop: the job runs, may be stopped, and what is gained is more than what it costs."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """A running job that gives way to a waiting one.

    Attributes:
        job: that is stopped.
        price: seconds that its GPUs are held without getting on when it runs again; `None` if it may not be stopped.
        left: seconds that it is expected to run still.
        gpus: that it holds.
        other: for whom.
        lasts: seconds that that one is expected to run.
        needs: GPUs of that one.
        moved: whether the job goes on at once elsewhere.
    """

    job: str
    price: float | None
    left: float
    gpus: int
    other: str
    lasts: float
    needs: int
    moved: bool = False


def verify_stop(exchange: Exchange, running: Container[str], order: float) -> list[str]:
    """Return what is wrong with a stop, in plain words; nothing if it may be.

    A job that is stopped must have more left than the other one needs and than the stop costs, in seconds times GPUs
    to the power `order`. One that is moved delays nobody but itself: the GPU seconds that it loses must be fewer than
    those of the one that it makes room for.
    """
    e = exchange
    if e.job not in running:
        return [f"{e.job}: it does not run"]
    if e.other in running:
        return [f"{e.other}: it runs already, nobody need stop for it"]
    if e.price is None:
        return [f"{e.job}: it may not be stopped"]
    if e.left <= e.price:
        return [f"{e.job}: a stop costs {e.price:g} s, and it has {e.left:g} s left"]
    if e.moved:
        lost, gained = e.price * e.gpus, e.lasts * e.needs
        return [f"{e.job}: moving it costs {lost:g} GPU s, {e.other} needs {gained:g}"] if lost > gained else []
    left, needs = (e.left - e.price) * e.gpus**order, e.lasts * e.needs**order
    return [f"{e.job}: it has no more left than {e.other} needs and the stop costs"] if left <= needs else []
