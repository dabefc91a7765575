"""A reader of one's own: lines `op NAME SECONDS BYTES` and `edge NAME NAME` become an op graph."""

import gangplan


def from_lines(text: str) -> gangplan.OpGraph:
    """Build a graph of lines `op NAME SECONDS BYTES` and `edge NAME NAME`, the bytes those of the output."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    ops = {name: (float(seconds), float(size)) for kind, name, seconds, size in (r for r in rows if r[0] == "op")}
    if not ops:
        raise gangplan.InstanceError("op", "there is none")  # the field, and what is wrong with it
    place = {name: i for i, name in enumerate(ops)}
    source, target = zip(*((place[a], place[b]) for kind, a, b in (r for r in rows if r[0] == "edge")), strict=True)
    seconds, sizes = zip(*ops.values(), strict=True)
    nothing = [0.0] * len(ops)
    moved = [sizes[v] for v in source]
    return gangplan.OpGraph(tuple(ops), ("gpu",), [seconds], nothing, nothing, sizes, source, target, moved)


def main() -> gangplan.Result:
    """Split three ops over two GPUs."""
    graph = from_lines("op a 1 8e6\nop b 2 8e6\nop c 3 8e6\nedge a b\nedge b c\n")
    cluster = gangplan.Cluster.flat((gangplan.DeviceType("gpu"), 2), bandwidth=1e9)
    return gangplan.solve(gangplan.PartitionProblem(graph, cluster), time_limit=5)


if __name__ == "__main__":
    print(main())
