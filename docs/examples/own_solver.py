"""A solver of one's own: checked against an enumeration of all plans, then run by `solve` beside the others."""

import numpy as np

import gangplan
from gangplan.solvers.check import check_solver
from gangplan.solvers.partition.throughput.ideals import linear_extension


def even_cuts(run, reduced):
    """Cut a topological order of the ops into equal pieces, for one device, for two, and so on."""
    q = reduced.pipeline  # groups of ops that share a device; q.counts devices of each type
    order = np.array(linear_extension(q))
    devices = np.repeat(np.arange(len(q.counts)), q.counts).tolist()
    for count in range(1, len(devices) + 1):
        pieces = zip(devices, np.array_split(order, count), strict=False)
        plan = q.plan([(kind, piece.tolist()) for kind, piece in pieces if len(piece)])
        if run.stopped:  # look often
            return
        if gangplan.verify(run.problem, plan).ok:  # an infeasible offer is an error
            run.offer(plan, "even_cuts")


def main() -> gangplan.Result:
    """Check it, and return what it finds by itself."""
    method = gangplan.Method(even_cuts)
    check_solver(method, "throughput")  # on tiny problems in which every constraint binds
    gangplan.register(gangplan.Entry("throughput", "even_cuts", method, share=0.2))
    problem = gangplan.generate("layered", ops=40, layers=10, training=False, devices=4)
    alone, auto = (gangplan.solve(problem, method=name, time_limit=2) for name in ("even_cuts", "auto"))
    print(f"even_cuts {alone.objective:.4g} s, auto {auto.objective:.4g} s, no plan below {auto.bound:.4g} s")
    gangplan.unregister("throughput", "even_cuts")
    return alone


if __name__ == "__main__":
    main()
