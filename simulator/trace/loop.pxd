from gangplan.simulator.fit cimport Held, Nodes, Reservation
from gangplan.solvers.native cimport Float, Floats, Heap, Int, Ints

cdef enum:
    HEAD, OVERTAKE, EASY

cdef class Tree:
    cdef Floats value
    cdef Int inner
    cdef void put(self, Int leaf, Float value) noexcept nogil
    cdef Int find(self, Int begin, Float now, Float until) noexcept nogil

cdef class Lines:
    cdef Int n
    cdef Ints job, place, rank, line, size, begin, first
    cdef Tree spans
    cdef void join(self, Int job, Float span) noexcept nogil
    cdef void leave(self, Int place) noexcept nogil
    cdef Int first_of(self, Int line, Int begin, Float now, Float until) noexcept nogil
    cdef Int behind(self, Int line, Int past) noexcept nogil

cdef class Levels:
    cdef Int most
    cdef Ints count
    cdef Tree there
    cdef void give(self, Nodes nodes, Int node, Int gpus) noexcept nogil
    cdef bint fits(self, Nodes nodes, Int need) noexcept nogil
    cdef Int take(self, Nodes nodes, Int job, Held held, Int used) noexcept nogil

cdef Int _first_in_turn(Lines lines, Levels levels, Nodes nodes, bint overtake) noexcept nogil
cdef Int _first_spare(
    Lines lines, Levels levels, Int past, Float now, Nodes nodes, Reservation reservation
) noexcept nogil
