from gangplan.solvers.native cimport Float, Floats, Floats2, Floats3, Int, Ints, Ints2, Ints3

cdef class Data:
    cdef readonly Int n
    cdef Int options, kind, nodes, per
    cdef bint makespan
    cdef Ints first, gpus, size, block_first, server
    cdef Floats seconds, due, release, slope, price
