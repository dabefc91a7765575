from gangplan.solvers.native cimport Flags, Flags2, Float, Floats, Floats2, Heap, Int, Ints

cdef class Held:
    cdef Ints first, count, node, gpus

cdef class Nodes:
    cdef Int n, m, resources, biggest
    cdef bint consolidate
    cdef Ints degree, kind
    cdef readonly Ints node, gpus
    cdef Floats span
    cdef Floats2 unit, free, whole
    cdef Flags2 ok
    cdef Int able(self, Int job, Int node, Int most, bint whole) noexcept nogil
    cdef Int find(self, Int job, Int need) noexcept nogil
    cdef Float total(self) noexcept nogil
    cdef void give(self, Int job, Int node, Int gpus) noexcept nogil
    cdef void move(self, Held held, Int job, Int sign) noexcept nogil
    cdef void follow(self, Nodes other) noexcept nogil

cdef class EasyShadow:
    cdef Int job
    cdef readonly Float shadow
    cdef readonly Nodes later
    cdef Heap ends
    cdef void wait(self, Int job, Nodes nodes, Held held) noexcept nogil
    cdef bint stands(self, Nodes nodes, Int other, Int rows) noexcept nogil
    cdef void take(self, Nodes nodes, Int other, Int rows, Int sign) noexcept nogil

cdef bint _make_room(
    Int job, Ints victims, Int behind, Flags stop, Nodes nodes, Held held, Nodes room
) noexcept nogil
