from gangplan.solvers.native cimport Float, Floats, Floats2, Int, Ints, Ints2, Random

cdef class LatencyArrays:
    cdef Int groups, items, slots
    cdef Ints kind, host, group, member_first, member, before_first, before, after_first, after, size, net_first, net
    cdef Floats room, memory, cost
    cdef Floats2 time, group_time

cdef class LatencyState:
    cdef Ints slot, moved, came_from, waits, queue, top, below
    cdef readonly Floats load
    cdef Floats used, finish
    cdef Ints2 inside
