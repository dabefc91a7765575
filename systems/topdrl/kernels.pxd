from gangplan.simulator.gangs.allocate cimport choose
from gangplan.simulator.gangs.arrays cimport ARRIVED, NOW, RUNNING, WAITING, GpuRacks, Jobs, State
from gangplan.simulator.gangs.listing cimport Listing, decode, sort_in
from gangplan.simulator.gangs.step cimport (
    begin_job, communication, pass_time, rate, remaining, restore, total, total_jct,
)
from gangplan.solvers.native cimport Flags, Flags2, Float, Floats, Floats2, Int, Ints, Ints2, Random

ctypedef float[:, ::1] Singles2
ctypedef float[:, :, ::1] Singles3
ctypedef float[:, :, :, ::1] Singles4

cpdef enum:
    HEAD, OVERTAKE, EASY

cpdef enum:
    SUBMIT, LENGTH, LOG_LENGTH, GPUS, LOG_GPUS, NOISE, LOG_SLOWDOWN

cpdef enum:
    JCT, THROUGHPUT

cpdef enum:
    BEHIND, FREE, BUSY, WANTED, WORK, ARRIVING

cpdef enum:
    AS_THE_RULE = -2
    WAIT = -1
    GIVEN = -1

cdef class Scoring:
    cdef Floats weights, noise
    cdef Ints take, best, left
    cdef Float shadow
    cdef Int spare

cdef Float _score(Jobs jobs, GpuRacks cluster, Int job, Scoring s, bint fits) noexcept nogil
cdef void _reserve(Jobs jobs, State state, Scoring s, Int need) noexcept nogil
cdef void _go_on(
    Jobs jobs, GpuRacks cluster, State state, Int choice, Int allocator, Ints take, Float hold, Flags mask, Floats paid
) noexcept nogil
cdef bint _offer(Jobs jobs, State state, Flags mask) noexcept nogil
cdef bint _wait(Jobs jobs, GpuRacks cluster, State state, Float hold, Floats paid) noexcept nogil
cdef Int _steps(Float seconds, Float step, Int most) noexcept nogil
