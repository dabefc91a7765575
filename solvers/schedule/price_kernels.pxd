from gangplan.solvers.native cimport Flags, Float, Floats, Floats2, Halves2, Heap, Int, Ints, Word, Words2, within
from gangplan.solvers.schedule.kernels cimport Data
