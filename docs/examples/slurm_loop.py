"""A loop of one's own around Slurm: read the cluster, decide, release each job to its nodes; sleep; once more.

`gangplan slurm` is this with a dry run and a log that outlives it. Jobs come by ``sbatch --hold --comment=gangplan``.
"""

import sys
import time

from gangplan import Scheduler
from gangplan.doors.core import Core
from gangplan.doors.slurm.client import AwayError
from gangplan.doors.slurm.rounds import SlurmRounds
from gangplan.doors.slurm.view import SlurmView, tracks_memory


def main(rounds: int = sys.maxsize, interval: float = 2.0) -> list[str]:
    """Do so many rounds, seconds apart, and return what was done, in words."""
    view = SlurmView.read()  # by squeue, sinfo and scontrol
    scheduler = Scheduler(view.fleet, durations="history")
    door = SlurmRounds(Core(scheduler, None), "gangplan", print, memory=tracks_memory(), spread=False)
    done = []
    for number in range(rounds):
        try:
            view = SlurmView.read(view)
            done += door.round(view)
        except AwayError as error:  # slurmctld is restarted: nothing is lost
            print(error)
        for name in scheduler.waiting:
            print(scheduler.explain(name).why)
        if number + 1 < rounds:
            time.sleep(interval)
    return done


if __name__ == "__main__":
    main()
