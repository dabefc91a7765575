from gangplan.solvers.native cimport Flags2, Float, Floats, Floats2, Halves2, Heap, Int, Ints, Ints2, within
from gangplan.solvers.partition.throughput.kernels cimport PipelineArrays

cdef class Table:
    cdef Int several
    cdef Ints2 orders, ideal, source, trace
    cdef Halves2 before, start
    cdef Flags2 last
    cdef Ints seen, latest, began, live
    cdef Floats2 value, done
    cdef Floats left
