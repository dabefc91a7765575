"""Deterministic simulation of `gangplan.Scheduler`: a seed makes a cluster and what happens on it.

Checked after each event, against books of its own (`world.py`, after docs/scheduler.md):

- twice, place, gang: no GPU, core or byte is given twice; jobs are where label, type, rules and failures let them be.
- lost, refused, admission, taken, changed, error: nobody is lost or runs twice; right calls are taken, wrong ones are
  an `InstanceError` and change nothing.
- patience: who is patient does not start where it is slow, unless it is due or alone.
- window, drain, mend: nobody is where nodes close before it would end; who stops there may; torn gangs keep the rest.
- stop, cause, worth, early, seconds: who stops ran long enough, for one who starts there, and gains more than it costs.
- told, grace, claimed, wake: who is told to stop is told once, holds its GPUs until its grace is over, or it has
  stopped, and then those start for whom it did.
- limit, lent, owed, reclaim: no queue has more than its most, or what another does not lend; it gets what it is owed.
- array: so many of an array at most wait or run. Settings, nodes and the clock change; the books go by what is new.
- idle, spare, due, drained: jobs start where nobody else is or may be, or once they are due; in the end all are served.
- reserved, overtaken, starved: the first in order, or that is due, is not delayed; the page's bound holds.
- equal, restored, explain, late: equal calls and restored schedulers decide alike; explanations come true; in time.
- replayed: the log gives the same state to the byte, from what it says was decided and by deciding again.

Not checked: whether decisions are good; reservations behind the first, of jobs with several numbers of workers, and
beside a lookahead or stops; dues of jobs without seconds; learned speeds beyond that nothing breaks; while room is kept
for who waits for stops with grace, order, dues, gains, reclaim and what is not lent.
"""
