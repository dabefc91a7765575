"""HiGHS says nothing on standard output, which is for what users have asked."""

from __future__ import annotations

import subprocess
import sys


def test_no_greeting() -> None:
    """Neither a solver of one's own nor that of PuLP prints when it is made and run."""
    program = """
import pulp
from gangplan.solvers.highs import new_highs
solver = new_highs()
solver.silent()
solver.run()
lp = pulp.LpProblem("p", pulp.LpMinimize)
lp += pulp.LpVariable("x", 1, 2, "Integer")
lp.solve(pulp.HiGHS(msg=False))
print(pulp.value(lp.objective))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1.0\n" and done.stderr == ""


def test_solvers_of_unlike_threads() -> None:
    """A solver takes as many threads as it wants, whatever one before it in this process took."""
    from gangplan.solvers.highs import highspy, new_highs

    for threads in (2, 1, 2):
        solver = new_highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", threads)
        x = solver.addVariable(lb=0, ub=1.5, type=highspy.HighsVarType.kInteger)
        solver.maximize(x)
        assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
