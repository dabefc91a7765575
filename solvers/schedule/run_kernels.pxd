from gangplan.solvers.native cimport Float, Floats, Floats2, Heap, Int, Ints, within
from gangplan.solvers.schedule.kernels cimport Data

cdef class Grid:
    cdef readonly object pi
    cdef Int count
    cdef Floats cost, total
    cdef readonly Float zero, step
