from gangplan.solvers.native cimport Float, Floats, Floats2, Heap, Int, Ints, within
from gangplan.solvers.schedule.kernels cimport Data
from gangplan.solvers.schedule.price_kernels cimport Grid, run_cost
