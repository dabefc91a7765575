from gangplan.simulator.fit cimport Nodes
from gangplan.solvers.native cimport Float, Floats, Floats2, Int, Ints, Sorting

cdef class FreeShares:
    cdef Int most
    cdef Floats2 left
    cdef Ints size, room, holds
    cdef Sorting order
    cdef bint _find(self, Int job, Int need, Float share, Nodes nodes, Ints node, Ints gpu) noexcept nogil

cdef class FreeProfile:
    cdef Int steps, at, past
    cdef Floats time, least
    cdef Floats2 room
    cdef Nodes low
    cdef void change(self, Int step, Int job, Int node, Int gpus) noexcept nogil
    cdef Int _look(self, Int job) noexcept nogil
    cdef void _keep(self, Int job, Int rows) noexcept nogil
