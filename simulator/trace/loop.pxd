from gangplan.simulator.fit cimport Held, Nodes, EasyShadow
from gangplan.solvers.native cimport Float, Floats, Heap, Int, Ints

cdef enum:
    HEAD, OVERTAKE, EASY

cdef class MinTree:
    cdef Floats value
    cdef Int inner
    cdef void put(self, Int leaf, Float value) noexcept nogil
    cdef Int find(self, Int begin, Float now, Float until) noexcept nogil

cdef class SizeLines:
    cdef Int n
    cdef Ints job, place, rank, line, size, begin, first
    cdef MinTree spans
    cdef void join(self, Int job, Float span) noexcept nogil
    cdef void leave(self, Int place) noexcept nogil
    cdef Int first_of(self, Int line, Int begin, Float now, Float until) noexcept nogil
    cdef Int behind(self, Int line, Int past) noexcept nogil

cdef class Levels:
    cdef Int most
    cdef Ints count
    cdef MinTree there
    cdef void give(self, Nodes nodes, Int node, Int gpus) noexcept nogil
    cdef bint fits(self, Nodes nodes, Int need) noexcept nogil
    cdef Int take(self, Nodes nodes, Int job, Held held, Int used) noexcept nogil

cdef Int _first_in_turn(SizeLines lines, Levels levels, Nodes nodes, bint overtake) noexcept nogil
cdef Int _first_spare(
    SizeLines lines, Levels levels, Int past, Float now, Nodes nodes, EasyShadow reservation
) noexcept nogil
