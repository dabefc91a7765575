"""How jobs slow one another down, learned from a log of who was where and how fast."""

import numpy as np

from gangplan.learned.training.interference.models import fit
from gangplan.systems.interference.baselines import ScoreRule, load_balance
from gangplan.systems.interference.cases import TRAINING, poisson
from gangplan.systems.interference.samples import log, log_samples


def main(jobs: int = 20):
    """Fit a model to a log, and return the speeds that it predicts over those alone, with their deviations."""
    case = poisson(TRAINING, jobs=jobs)
    made = log(case, ScoreRule(load_balance))
    model = fit(log_samples(case, made), model="ridge")  # "pressure" is better, and takes longer
    mean, deviation = model.predict(made.now)  # of the logarithm; model.speeds(made.now) is in epochs a second
    return np.exp(mean), deviation


if __name__ == "__main__":
    print(main())
