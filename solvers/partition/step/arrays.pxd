from gangplan.solvers.native cimport Flags2, Float, Floats, Floats2, Int, Ints, Ints2

cdef class StepArrays:
    cdef readonly Int ops, devices, groups
    cdef readonly Float unit, even
    cdef readonly Ints group, zone
    cdef readonly Floats need, rank
    cdef readonly Floats2 work
    cdef Ints before_first, before, after_first, after, place, twin, edge_first, edge, other, heavy
    cdef Ints2 level
    cdef Flags2 near
    cdef Floats room
    cdef Floats2 seconds, delay

cdef bint within(Ints x, Int most) noexcept nogil
