# %% exercise="8.1"
def status(objective, bound):
    if objective is None:
        return ("INFEASIBLE" if bound == np.inf else "UNKNOWN"), None
    if bound is None:
        return "FEASIBLE", None
    gap = max(0.0, (objective - bound) / objective)
    return ("OPTIMAL" if gap <= 1e-6 else "FEASIBLE"), gap


# %% exercise="8.2"
def portfolio(problem, members, trusted):
    best, objective, bounds = None, None, []
    for name, member in members.items():
        try:
            plan, _, bound = member(problem)
            if bound is not None and name in trusted:
                bounds.append(bound)
            if plan is not None:
                verdict = gangplan.verify(problem, plan)
                if verdict.ok and (objective is None or verdict.objective < objective):
                    best, objective = plan, verdict.objective
        except Exception:
            continue
    return best, objective, max((x for x in bounds if objective is None or x <= objective), default=None)


# %% exercise="8.3"
class Guarded:
    def __init__(self, policy, fallback, strikes=3):
        self.policy, self.fallback, self.strikes, self.faults = policy, fallback, strikes, 0

    def rank(self, view):
        if self.faults < self.strikes:
            try:
                ranks = np.asarray(list(self.policy.rank(view)), dtype=float)
                if ranks.shape == (len(view.options),) and not np.isnan(ranks).any():
                    return ranks
            except Exception:
                pass
            self.faults += 1
        return self.fallback.rank(view)


# %% exercise="8.4"
def settle(scheduler, deadline):
    found = []
    while True:
        decision = scheduler.decide(deadline=deadline)
        found += decision.starts
        if not decision.more:
            return found
        if not decision.starts and not decision.stops:
            deadline *= 2


# %% exercise="8.5"
def who_decides(network, rule, ahead=0.9):
    decides, found = "rule", []
    for costs in zip(network, rule, strict=True):
        cost = dict(zip(("network", "rule"), costs, strict=True))
        other = "network" if decides == "rule" else "rule"
        if cost[other] < ahead * cost[decides]:
            decides = other
        found.append(decides)
    return found


# %% exercise="8.6"
def audit(problem, plan, claimed, certificate):
    try:
        verdict = gangplan.verify(problem, plan)
        bound = float(gangplan.verify_bound(problem, certificate))
    except gangplan.InstanceError:
        return None
    if not verdict.ok or abs(verdict.objective - claimed) > 1e-9 * verdict.objective:
        return None
    return (verdict.objective - bound) / verdict.objective
