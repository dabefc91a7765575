# %% exercise="7.1"
def targets(regret, temperature):
    weight = np.exp(-regret / temperature)
    return weight / weight.sum()


# %% exercise="7.2"
def probability(keys, order, sharp=SHARP):
    found, left = 1.0, list(order)
    for job in order:
        found *= np.exp(-sharp * keys[job]) / np.exp(-sharp * keys[left]).sum()
        left.remove(job)
    return found


# %% exercise="7.3"
def reach(edges, node, rounds):
    found = {node}
    for _ in range(rounds):
        found |= {source for source, target in edges if target in found}
    return found


# %% exercise="7.4"
def verdict(a, b):
    mean, margin = interval(a - b)
    if abs(mean) <= margin:
        return "not told apart"
    return "better" if mean < 0 else "worse"


# %% exercise="7.5"
def plans_needed(alone, chance):
    for count in range(1, chance.shape[1] + 1):
        if chance[:, :count].min(axis=1).mean() <= alone:
            return count
    return None


# %% exercise="7.6"
class Counted:
    def __init__(self, policy):
        self.policy, self.counts = policy, Counter()

    def decide(self, state):
        choice = self.policy.decide(state)
        if choice is not None:
            self.counts[state.blocks.degrees[choice.degree]] += 1
        return choice


twin = "constant-2"
