"""The graph network averages messages as by hand."""

from __future__ import annotations

import numpy as np
import torch

from gangplan.systems.pacml.published.network import DegreeNetwork, MeanPool, batch_of
from gangplan.systems.pacml.published.observe import FEATURES, OpRows
from gangplan.systems.pacml.published.recipe import PublishedSettings


def test_mean_pooling_by_hand() -> None:
    """An op hears the mean of itself and of those before it, each with its edge."""
    layer = MeanPool(1, 1)
    with torch.no_grad():
        for linear, weight in ((layer.node, [[2.0]]), (layer.edge, [[1.0, 0.0]]), (layer.out, [[1.0, 10.0]])):
            linear.weight.copy_(torch.tensor(weight))
            linear.bias.fill_(0.5 if linear is layer.out else 0.0)
    z, ends = torch.tensor([[1.0], [3.0], [-1.0]]), torch.tensor([[0, 1], [2, 2]])
    found = layer(z, ends, torch.tensor([[0.3, 0.0], [0.6, 1.0]]))
    # ops say 2, 6 and relu(-2) = 0, edges .3 and .6; op 2 hears the mean of (2, .3), (6, .6) and (0, 0), which is
    # (8/3, .3): 8/3 + 10 x .3 + .5; the others hear themselves alone: 2 + .5 and 6 + .5
    np.testing.assert_allclose(found.detach().numpy(), [[2.5], [6.5], [8 / 3 + 3.5]], rtol=1e-6)


def test_graphs_of_a_batch_do_not_mix() -> None:
    """The vector of a graph is the mean over its own ops, whatever else is in the batch."""
    torch.manual_seed(0)
    rng, network = np.random.default_rng(0), DegreeNetwork(PublishedSettings())

    def graph(n: int) -> OpRows:
        ends = np.array([np.arange(n - 1), np.arange(1, n)])
        return OpRows(rng.random((n, 5), np.float32), ends, rng.random((n - 1, 2), np.float32))

    graphs = [graph(3), graph(1), graph(7)]
    with torch.no_grad():
        together = network.encode(batch_of(graphs))
        for i, own in enumerate(graphs):
            torch.testing.assert_close(network.encode(batch_of([own]))[0], together[i])
    assert not torch.allclose(together[0], together[2])


def test_vectors_follow_the_weights() -> None:
    """What is kept of graphs while nothing learns is made anew once weights have changed."""
    torch.manual_seed(0)
    network = DegreeNetwork(PublishedSettings())
    network.graphs = batch_of([OpRows(np.ones((2, 5), np.float32), np.array([[0], [1]]), np.ones((1, 2), np.float32))])
    rows = torch.zeros(1, 1 + FEATURES)
    with torch.no_grad():
        before = network(rows)
        torch.testing.assert_close(network(rows), before)
        network.rounds[0].out.bias.add_(1.0)
        after = network(rows)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(network(rows).detach(), after)
