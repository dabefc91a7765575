from gangplan.solvers.native cimport Float, Floats, Int, Ints, Random
from gangplan.solvers.partition.step.arrays cimport StepArrays, within
from gangplan.solvers.partition.step.timing cimport Workroom, forward, ranks, slide

cdef class Annealing:
    cdef StepArrays arrays
    cdef Workroom room
    cdef Random random
    cdef readonly Float length, best
    cdef Int moves, balls, hanging
    cdef Ints where, member_first, member, moved, came, kept, goal, critical, hangs, seen, edge, pull, by_start
    cdef Floats bias, left, best_bias, latest, free, key
    cdef readonly Ints best_where, best_order

cdef void _return(StepArrays a, Annealing s) noexcept nogil
cdef void _begin(StepArrays a, Annealing s) noexcept nogil
cdef Float _evaluate(StepArrays a, Annealing s, Float limit) noexcept nogil
cdef void _keep(StepArrays a, Annealing s) noexcept nogil
cdef bint propose(StepArrays a, Annealing s) noexcept nogil
cdef void find_critical(StepArrays a, Annealing s) noexcept nogil
cdef void _move(StepArrays a, Annealing s, Int g, Int d) noexcept nogil
cdef void take_back(StepArrays a, Annealing s) noexcept nogil
cdef void _put(StepArrays a, Annealing s, Int g, Int d) noexcept nogil
cdef Int _ball(StepArrays a, Annealing s, Int g, Int size) noexcept nogil
cdef bint _settle(StepArrays a, Annealing s, Int here, Int there) noexcept nogil
cdef bint _exchange(StepArrays a, Annealing s) noexcept nogil
cdef bint choose(StepArrays a, Annealing s) noexcept nogil
cdef Float _promise(StepArrays a, Annealing s) noexcept nogil
cdef Float _less(StepArrays a, Int u, Int near, Int old, Int new) noexcept nogil
cdef Float _damped(Float x) noexcept nogil
