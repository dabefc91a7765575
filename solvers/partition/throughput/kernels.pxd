from gangplan.solvers.native cimport Flags, Float, Floats, Floats2, Halves2, Int, Ints, Random

cdef class PipelineArrays:
    cdef readonly Int groups, states
    cdef Ints net, first, before, first_before, after, first_after, size, counts, stride
    cdef Floats cost, memory, work, room, speed
    cdef Floats2 time
    cdef Flags host

cdef class PipelineState:
    cdef Int stages
    cdef Ints stage, kind, who, mark
    cdef Halves2 held
    cdef readonly Floats load
    cdef Floats used, weight
