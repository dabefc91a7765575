"""What a pointer that rests on a job in the picture of a schedule is told; lines have ``<br>`` between them."""

from __future__ import annotations

from .simulation import Run, SimulationPicture
from .simulation_time import words


def jobs(picture: SimulationPicture, run: Run) -> tuple[str, ...]:
    """Return what each box of a run is; it must have boxes."""
    o, boxes = run.outcome, run.lanes
    if boxes is None:
        return ()
    texts = []
    fields = (boxes.job, boxes.row, boxes.restoring, boxes.start, boxes.end, boxes.high - boxes.low)
    for job, row, restoring, start, end, tall in zip(*(x.tolist() for x in fields), strict=True):
        submit, node, gpu = float(o.workload.submit[job]), int(o.row_node[row]), int(o.row_gpu[row])
        share = f"{o.row_share[row]:.3g} of " if o.row_share[row] < 1 else ""
        held = f"GPU {gpu}" if gpu >= 0 and tall <= 1 else _gpus(round(tall))
        asked = f"asked for {_gpus(int(o.workload.gpus[job]))}, {picture.classes.names[int(run.kind[job])]}"
        first, wait = submit - picture.first, float(o.start[job]) - submit
        lines = [
            f"{o.workload.names[job]}{': restored' if restoring else ''}",
            share + held + (f" of node {node}" if node >= 0 else ""),
            f"{words(start - picture.first, 4)} to {words(end - picture.first, 4)}: {words(end - start)}",
            asked,
            f"submitted at {words(first, 4)}, waited {words(wait)}, done after {words(float(o.finish[job]) - submit)}",
        ]
        if not restoring and o.row_rate[row] != 1:
            lines.append(f"at {o.row_rate[row]:.3g} of its speed")
        texts.append("<br>".join(lines))
    return tuple(texts)


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"
