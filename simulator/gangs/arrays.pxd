from gangplan.solvers.native cimport Floats, Heap, Int, Ints

cpdef enum:
    NOW = 0

cpdef enum:
    ARRIVED, WAITING, RUNNING

cdef class Arrays:
    cdef dict __dict__

cdef class Jobs(Arrays):
    cdef Floats submit, work, expected, intensity
    cdef Ints gpus, first

cdef class GpuRacks(Arrays):
    cdef Ints rack, begin, first, node
    cdef Floats weight

cdef class State(Arrays):
    cdef Floats clock, start, finish, urgency, cost
    cdef Ints count, queue, running, free, holder, held
    cdef Heap ends
    cpdef void push(self, Int job) noexcept nogil
    cpdef Int pop(self) noexcept nogil
