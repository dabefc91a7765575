# %% [markdown]
# # Solutions to notebook 2


# %% exercise="2.1"
def starts_of(seconds, gpus):
    free, starts = [0.0] * gpus, []
    for p in seconds:
        starts.append(heapq.heappop(free))
        heapq.heappush(free, starts[-1] + p)
    return starts


# %% exercise="2.2"
def bound(seconds, gpus):
    return max(*seconds, sum(seconds) / gpus)


# %% [markdown]
# Six jobs of a second keep three GPUs busy for two seconds, then the long one starts: 5 s. With it first all is over
# after 3 s. For m GPUs: m (m - 1) jobs of 1 s, then one of m s.

# %% exercise="2.3"
answer = [1, 1, 1, 1, 1, 1, 3]


# %% exercise="2.4"
def longest_first(seconds):
    return sorted(seconds, reverse=True)


# %% [markdown]
# LPT puts the threes on different GPUs, and ends after 3 + 2 + 2 = 7; together they leave 2 + 2 + 2 = 6 to the other.

# %% exercise="2.5"
answer = [3, 3, 2, 2, 2]


# %% [markdown]
# The swap gains if w_k p_j > w_j p_k: by falling weight per second (Smith 1956).


# %% exercise="2.6"
def order(seconds, weights):
    return sorted(range(len(seconds)), key=lambda j: -weights[j] / seconds[j])
