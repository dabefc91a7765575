from gangplan.simulator.gangs.allocate cimport CLOSEST, choose
from gangplan.simulator.gangs.arrays cimport NOW, RUNNING, WAITING, GpuRacks, Jobs, State
from gangplan.simulator.gangs.listing cimport sort_in
from gangplan.simulator.gangs.step cimport begin_job, communication, pass_time, total
from gangplan.solvers.native cimport Float, Floats, Int, Ints

cpdef enum:
    GPUS, SLOWDOWN, WAITED, CROWDED, ONE, LENGTH, WIDTH, RUNS, CROWD, AGE, HOLD

cdef class Formula:
    cdef Floats w, ideal, key, cost
    cdef Ints asked, take
    cdef Int change
    cdef public Float typical, runs, crowd

cdef Float _late(Jobs jobs, Int job, Float now) noexcept nogil
cpdef Float key_of(Jobs jobs, Int job, Float now, Formula f) noexcept nogil
cpdef Float hope(Jobs jobs, Int job, Float cost, Float now, Formula f) noexcept nogil
cpdef void look_at(Jobs jobs, State state, Float unseen, Formula f) noexcept nogil
cdef Int run_formula(Jobs jobs, GpuRacks cluster, State state, Formula f, Float until) noexcept nogil
