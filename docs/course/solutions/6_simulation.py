# %% exercise="6.1"
def erlang_wait(servers, load, seconds):
    from math import factorial

    work = servers * load
    full = work**servers / factorial(servers) / (1 - load)
    busy = full / (sum(work**k / factorial(k) for k in range(servers)) + full)
    return seconds / (servers * (1 - load)) * busy


# %% exercise="6.2"
def general_wait(load, seconds, variation):
    return load / (1 - load) * (1 + variation) / 2 * seconds


worse = np.exp(1.5**2)

# %% exercise="6.3"
starts = {"head": [0, 10, 15, 15], "overtake": [0, 27, 2, 7], "easy": [0, 10, 2, 15]}


# %% exercise="6.4"
def paired(a, b):
    from scipy.stats import t

    apart = a - b
    mean, n = apart.mean(), len(apart)
    margin = t.ppf(0.975, n - 1) * apart.std(ddof=1) / np.sqrt(n)
    return mean, margin, [seed for seed in range(n) if apart[seed] * mean < 0]


# %% exercise="6.5"
def tune(cost, choices, tuning):
    return min(choices, key=lambda x: np.mean([cost(x, seed) for seed in tuning]))


# %% exercise="6.6"
def peeks(go, jobs, moment):
    from dataclasses import replace

    before = go(jobs)
    factor = np.random.default_rng(0).uniform(1, 10, jobs.n_jobs)
    after = go(replace(jobs, duration=np.where(before.finish > moment, factor, 1.0) * jobs.duration))
    early = [np.where(x.start <= moment, x.start, np.inf) for x in (before, after)]
    return not np.array_equal(*early)
