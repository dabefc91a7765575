from gangplan.solvers.native cimport Float, Floats, Floats2, Heap, Int, Ints, Ints2, Ints3
from gangplan.solvers.partition.step.arrays cimport StepArrays, within

cdef class Stretches:
    cdef Floats2 low, high
    cdef Ints count
    cdef void clear(self) noexcept nogil
    cpdef Float first(self, Int d, Float ready, Float took) noexcept nogil
    cpdef void take(self, Int d, Float start, Float end) noexcept nogil

cdef class Workroom:
    cdef StepArrays arrays
    cdef bint contention
    cdef Int schedule, done
    cdef Ints device, topological, reads
    cdef readonly Ints order
    cdef Floats tail, key
    cdef readonly Floats start, finish
    cdef Ints3 route
    cdef Floats2 sent
    cdef Ints2 made
    cdef Heap by_tail, by_key
    cdef Stretches devices, links

cdef void clear(Workroom room) noexcept nogil
cdef void sort_reads(StepArrays a, Workroom room, Int v) noexcept nogil
cdef Float arrival(StepArrays a, Workroom room, Int v, Int d, bint book) noexcept nogil
cdef Float _send(Workroom room, Int here, Int d, Float ready, Float took, bint book) noexcept nogil
cdef Float forward(StepArrays a, Workroom room, Float limit) noexcept nogil
cdef Float _keep(Workroom room, Float best, Float length, Floats start, Floats finish) noexcept nogil
cdef void sort(Workroom room, Heap heap) noexcept nogil
cdef void ranks(StepArrays a, Workroom room) noexcept nogil
cdef void slide(Floats key, Ints place, Ints order) noexcept nogil
cdef void _backward(StepArrays a, Workroom room) noexcept nogil
