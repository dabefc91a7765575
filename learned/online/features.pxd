from gangplan.learned.online.candidates cimport WAIT, CandidateScratch, remaining, sort_in
from gangplan.simulator.gangs.allocate cimport CLOSEST, choose
from gangplan.simulator.gangs.arrays cimport ARRIVED, NOW, RUNNING
from gangplan.simulator.gangs.formula cimport Formula, hope
from gangplan.simulator.gangs.step cimport communication, total
from gangplan.solvers.native cimport Float, Int, Ints

cpdef enum:
    BY_RULE = 27
    FEATURES = 31

cdef void see(CandidateScratch s) noexcept nogil
cdef void write_rows(CandidateScratch s, Formula f, Int k) noexcept nogil
cdef void _write_rule(CandidateScratch s, Formula f, Int k) noexcept nogil
cdef bint _is_first(CandidateScratch s, Int i) noexcept nogil
cdef Float effective(CandidateScratch s, Int job, Float cost) noexcept nogil
cdef void look_ahead(CandidateScratch s) noexcept nogil
cdef void _hold_up(CandidateScratch s) noexcept nogil
cdef void count_idle(CandidateScratch s, Ints free) noexcept nogil
cdef Float soon(Float seconds, Float unit) noexcept nogil
cdef void _write_candidate(CandidateScratch s, Int i, Int k, Float least) noexcept nogil
cdef void _find_gain(CandidateScratch s, Float duration, Float length, Float intensity, Int gpus) noexcept nogil
cdef void _write_place(CandidateScratch s, Int i, Float duration) noexcept nogil
