"""The three-field notation of scheduling (Graham, Lawler, Lenstra, Rinnooy Kan 1979) for problems of this library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, InstanceError, RampTopology
from gangplan.instances.partition import LatencyProblem, PartitionProblem, StagesProblem, StepProblem
from gangplan.instances.pipeline import PipelineProblem
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.schedule import NodePool, ScheduleProblem, total

Said = dict[str, str]
"""Sentences by symbol."""


@dataclass(frozen=True, slots=True)
class Notation:
    """What a problem is called: machines | jobs | objective.

    Attributes:
        alpha, beta, gamma: the three fields.
        sentences: what each symbol means here, by symbol, in their order.
        ours: symbols that are not classic, and are this library's own.
    """

    alpha: str
    beta: str
    gamma: str
    sentences: Said
    ours: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.alpha}|{self.beta}|{self.gamma}"

    def __repr__(self) -> str:
        lines = [f"{x}: {words}{' (not classic)' * (x in self.ours)}" for x, words in self.sentences.items()]
        return "\n".join([str(self), *lines])


def notation(problem: Any) -> Notation:
    """Return the three-field notation of a problem, with a sentence for each symbol.

    Machine environments: ``1``, ``P`` (identical), ``Q`` (uniform), ``R`` (unrelated) and ``J`` (a job shop). Symbols
    that the literature does not have are in `Notation.ours`.

    Raises:
        InstanceError: if it is no problem of this library.
    """
    if isinstance(problem, ScheduleProblem):
        return _schedule(problem)
    if isinstance(problem, PipelineProblem):
        return _pipeline(problem)
    if isinstance(problem, PlacementProblem):
        return _placement(problem)
    if isinstance(problem, GraphProblem):
        return _graph(problem)
    raise InstanceError("problem", f"a {type(problem).__name__} is no problem of this library")


def _schedule(problem: ScheduleProblem) -> Notation:
    jobs, gpus = problem.jobs, total(problem.capacity)
    alpha = "1" if gpus == 1 else "P"
    beta: Said = {}
    if any(len(job.degrees) > 1 for job in jobs):
        beta["any_j"] = "A job is moldable: its number of GPUs is chosen before it starts, and its time depends on it."
    elif any(job.degrees != (1,) for job in jobs):
        beta["size_j"] = "A job is a gang: it holds a given number of GPUs from its start to its end."
    if isinstance(problem.capacity, NodePool) and problem.capacity.nodes > 1:
        beta["nodes"] = "GPUs are on equal nodes: a small gang is on one, a larger one fills nodes."
    if isinstance(problem.capacity, RampTopology):
        beta["blocks"] = "A gang holds a block of servers of a RAMP cluster."
    if any(job.release for job in jobs):
        beta["r_j"] = "A job starts at its release or later."
    if any(job.deadline is not None for job in jobs):
        beta["dbar_j"] = "A job that runs ends by its deadline, which is strict: it is no due date."
    must = problem.goal in ("weighted_completion", "mean_jct", "makespan")
    if must and any(job.value is not None for job in jobs):
        beta["rej"] = "Jobs with a value may be left out (rejected); that costs the value."
    machine = "There is one GPU." if gpus == 1 else f"There are {gpus} identical GPUs."
    gamma, words = _goal(problem, "rej" in beta)
    return _built({alpha: machine}, beta, {gamma: words}, {"nodes", "blocks"})


def _goal(problem: ScheduleProblem, rejects: bool) -> tuple[str, str]:
    more, tail = (" + sum v_j", ", and the values of the jobs left out") if rejects else ("", "")
    weighted = any(job.weight != 1 for job in problem.jobs)
    summed, words = ("w_j C_j", "weight times completion") if weighted else ("C_j", "completions")
    due = f"the common due date {problem.horizon or 0.0:g} s"
    return {
        "makespan": (f"C_max{more}", f"The last completion is minimised{tail}."),
        "weighted_completion": (f"sum {summed}{more}", f"The sum of {words} is minimised{tail}."),
        "mean_jct": (f"sum F_j / n{more}", f"The mean flow time, completion less release, is minimised{tail}."),
        "blocked": ("sum v_j U_j", "The values of the jobs that are turned away are minimised; U_j is 1 if job j is."),
        "throughput": ("sum w_j U_j", f"The weights of the jobs not done by {due} are minimised."),
    }[problem.goal]


def _pipeline(problem: PipelineProblem) -> Notation:
    count = problem.devices
    beta: Said = {"recrc": "A job, a micro-batch, comes back to machines: its passes are a chain there and back."}
    if problem.split:
        beta["W"] = "Gradients of weights may wait: no pass but the end of the step waits for them."
    if problem.transfer.any():
        beta["c_j"] = "Activations and gradients take time to another device."
    if len(problem.capacity):
        beta["mem"] = "Devices have room for the activations of some micro-batches."
    gamma = {"C_max": "The last completion, of one training step, is minimised."}
    if not problem.barrier:
        gamma = {"cycle": "The time from one step to the next is minimised, in the long run."}
    alpha = (
        {"1": "There is one device."} if count == 1 else {"J": f"A job shop of {count} devices: each pass has its own."}
    )
    return _built(alpha, beta, gamma, {"W", "mem", "cycle"})


def _placement(problem: PlacementProblem) -> Notation:
    fleet, jobs = problem.fleet, problem.jobs
    kinds = len(fleet.gpu_types)
    types = "of one type" if kinds == 1 else f"of {kinds} types"
    machines = {("P" if kinds == 1 else "R"): f"There are {fleet.n_gpus} GPUs, {types}, on {fleet.n_nodes} nodes."}
    beta: Said = {}
    if any(len(job.workers) > 1 for job in jobs):
        beta["any_j"] = "A gang may have several numbers of workers."
    elif any(job.workers != (1,) for job in jobs):
        beta["size_j"] = "A gang has a given number of workers, all placed at once."
    beta["net"] = "Workers on different nodes synchronise over links that gangs share."
    if problem.speeds.host.any() or problem.speeds.gpu.any():
        beta["interf"] = "Jobs on one node or GPU slow one another down."
    if problem.running:
        beta["running"] = "Some jobs run already, and stay or cost a migration."
    if any(job.value is not None for job in jobs):
        beta["rej"] = "Jobs with a value may be left out (rejected); that costs the value."
    goals = {
        "slowdown": ("sum w_j S_j", "The weighted slowdowns are minimised. Nothing has a start: all run at once."),
        "throughput": ("sum w_j (1 - 1/S_j)", "The weighted losses of throughput are minimised, all running at once."),
        "communication": ("sum w_j K_j", "The weighted communication costs are minimised, all running at once."),
        "fragmentation": ("frag", "The GPUs left over that tasks to come cannot use are minimised."),
    }
    gamma, words = goals[problem.goal]
    return _built(machines, beta, {gamma: words}, {"net", "interf", "running", gamma})


def _graph(problem: GraphProblem) -> Notation:
    graph, count = problem.graph, problem.cluster.n_devices
    chains = all(np.bincount(ends, minlength=1).max() <= 1 for ends in (graph.source, graph.target))
    alpha, words = _machines(problem, chains)
    beta: Said = {}
    if graph.n_edges:
        beta["chains" if chains else "prec"] = "An op starts when all ops that it reads from are done."
    if count > 1 and problem.transfer().any():
        beta["c_j"] = "The output of an op takes time to another device."
    if np.isfinite(problem.capacity()).any() and graph.memory.any():
        beta["mem"] = "Devices have a memory that their ops share."
    if isinstance(problem, StepProblem):
        if alpha == "J":  # which says so
            beta.pop("chains", None)
        if problem.contention and "c_j" in beta:
            beta["links"] = "Transfers wait for one another on links."
        gamma = {"C_max": "The last completion, of one training step, is minimised."}
        return _built({alpha: words}, beta, gamma, {"mem", "links"})
    if isinstance(problem, LatencyProblem):
        beta["call"] = "An accelerator runs all its ops in one call, with all inputs before and all outputs after it."
        gamma = {"C_max": "The completion of one sample is minimised."}
        return _built({alpha: words}, beta, gamma, {"mem", "call"})
    if isinstance(problem, StagesProblem):
        beta["any_j"] = "A stage, an interval of ops, may have several devices, as replicas or sharing ops."
        told = "The time a sample of the slowest stage of a full pipeline is minimised: no start is chosen."
        return _built({alpha: words}, beta, {"max T_s": told}, {"mem", "max T_s"})
    assert isinstance(problem, PartitionProblem)
    if problem.variant != "free":
        beta[problem.variant] = {
            "contiguous": "Devices are a chain of stages, and edges lead from earlier stages to later ones.",
            "convex": "No path leaves a device and comes back.",
        }[problem.variant]
    beta.pop("prec", None)
    beta.pop("chains", None)
    gamma = {"C_max": "The load of the busiest device is minimised: where nothing has an order, that is C_max."}
    return _built({alpha: words}, beta, gamma, {"mem", "contiguous", "convex"})


def _machines(problem: GraphProblem, chains: bool) -> tuple[str, str]:
    count, time = problem.cluster.n_devices, problem.time()[problem.cluster.counts() > 0]
    if count == 1:
        return "1", "There is one device."
    if (time == time[0]).all():
        return "P", f"There are {count} identical devices."
    able = np.isfinite(time)
    own = (able.sum(axis=0) == 1).all() and (problem.cluster.counts() <= 1).all()
    if isinstance(problem, StepProblem) and chains and own:
        return "J", f"A job shop: each op has its own of {count} machines, and the ops of a job are a chain."
    if able.all() and np.allclose(time * time[0, 0], time[0] * time[:, :1], rtol=1e-9, atol=0.0):
        return "Q", f"There are {count} devices that differ by a factor of speed."
    return "R", f"There are {count} unrelated devices: an op has a time for each type, or cannot run there."


def _built(alpha: Said, beta: Said, gamma: Said, ours: set[str]) -> Notation:
    symbols = alpha | beta | gamma
    one, two, three = (", ".join(x) for x in (alpha, beta, gamma))
    return Notation(one, two, three, symbols, tuple(x for x in symbols if x in ours))
