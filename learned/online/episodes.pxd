from gangplan.learned.graph.compiled cimport CompiledNetwork, Graph, scores, strange
from gangplan.learned.online.candidates cimport AT_ONCE, CROWD, HELD_UP, IN_SIGHT, LISTED, ODD, RUNS, TYPICAL, \
    UNSEEN, WAIT, CandidateScratch, sort_in
from gangplan.learned.online.features cimport BY_RULE, see
from gangplan.learned.online.graph cimport write_graph
from gangplan.simulator.gangs.arrays cimport ARRIVED, NOW, WAITING, Cluster, Jobs, State
from gangplan.simulator.gangs.formula cimport Formula, key_of, look_at
from gangplan.simulator.gangs.step cimport begin_job, pass_time
from gangplan.solvers.native cimport Float, Int

cdef bint take_candidate(Jobs jobs, Cluster cluster, State state, CandidateScratch s, Int i) noexcept nogil
cdef void _rate_candidates(
    Graph g, CompiledNetwork net, CandidateScratch s, Int k, bint learned
) noexcept nogil
cdef void _see_queue(Jobs jobs, State state, CandidateScratch s, Formula f) noexcept nogil
cdef Int _rate_state(
    Jobs jobs, Cluster cluster, State state, CandidateScratch s, Graph g, CompiledNetwork net, Formula f,
    bint learned
) noexcept nogil
cdef Int go_on(
    Jobs jobs, Cluster cluster, State state, CandidateScratch s, Graph g, CompiledNetwork net, Formula f,
    Formula behind, bint learned, Int until, Int most
) noexcept nogil
