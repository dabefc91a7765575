from gangplan.solvers.native cimport Float, Floats, Floats2, Floats3, Int, Ints, Ints2, Ints3
from gangplan.solvers.schedule.kernels cimport Data, Room, Schedule, chosen, clear, seat

cdef class ListWalk:
    cdef Int n, saved
    cdef readonly Ints order, wish, best_order, best_wish
    cdef Ints trial, slot
    cdef readonly Floats cost, last
    cdef Floats trial_cost, trial_last
    cdef Floats3 times
    cdef Ints3 free
    cdef Ints2 count
