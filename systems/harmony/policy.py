"""Harmony's policy: task by task the action of the best score, until the interval ends."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gangplan.learned.policy.network import NetworkPolicy
from gangplan.solvers.processes import one_thread

from ..interference.environment import Environment
from .observe import FOR_CRITIC, Lane, actions, width, widths
from .recipe import NAME, HarmonySettings


class FeedForward(nn.Module):
    """Scores actions by the flat state x, r, w, p, v, d (INFOCOM 2019; two layers, their sizes ours).

    Args:
        outputs: how many scores, by default one an action; the critic, in both architectures, has one.
    """

    def __init__(self, settings: HarmonySettings, outputs: int | None = None) -> None:
        super().__init__()
        wide = 2 * settings.width
        last = nn.Linear(wide, actions(settings) if outputs is None else outputs)
        with torch.no_grad():
            last.weight.mul_(0.1)  # all actions are about as likely at first
        self._shown = width(settings) - (FOR_CRITIC if outputs is None else 0)
        self.layers = nn.Sequential(nn.Linear(self._shown, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), last)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores of states, (B, outputs).

        Args:
            rows: what `gangplan.systems.harmony.observe.Lane.seen` is, float32 (B, width).
        """
        return self.layers(rows[:, : self._shown])


class Attention(nn.Module):
    """Scores actions by a sequence-to-sequence network with multi-head attention (ToN 2023).

    Known are an encoder, a decoder, and attention with several heads between them. Ours is the rest: the encoder reads
    the servers, each with what it has free and with the workers and parameter servers there of each type, and attends
    to all; the decoder reads the waiting jobs, which attend to one another and to the servers. The score of (job, kind,
    server) is made of the job, the server, and the tasks of the job that are there; that of the interval's end of all.
    """

    def __init__(self, settings: HarmonySettings) -> None:
        super().__init__()
        self._of, k, m, wide = settings, settings.types, settings.servers, settings.width
        self.server, self.place = nn.Linear(3 + 2 * k, wide), nn.Parameter(0.1 * torch.randn(m, wide))
        self.encoder = nn.TransformerEncoderLayer(wide, settings.heads, 2 * wide, 0.0, batch_first=True)
        self.job = nn.Linear(k + 6 + 2 * m, wide)
        self.decoder = nn.TransformerDecoderLayer(wide, settings.heads, 2 * wide, 0.0, batch_first=True)
        self.of_job, self.of_server, self.of_tasks = (nn.Linear(x, wide) for x in (wide, wide, 2))
        self.score, self.end = nn.Linear(wide, 2), nn.Sequential(nn.Linear(2 * wide + 1, wide), nn.ReLU())
        self.end_score = nn.Linear(wide, 1)
        with torch.no_grad():
            for last in (self.score, self.end_score):
                last.weight.mul_(0.1)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores of states, (B, actions); see `FeedForward.forward`."""
        of, b = self._of, len(rows)
        k, m = of.types, of.servers
        v, waiting, d, more, _ = rows.split([*widths(of), 1, FOR_CRITIC], dim=1)
        jobs, d = waiting.view(b, of.slots, -1), d.view(b, of.running, -1)
        there = torch.einsum("brk,brx->bxk", d[..., :k], d[..., k:]).reshape(b, m, 2 * k)
        servers = self.encoder(self.server(torch.cat([v.view(b, m, 3), there], dim=2)) + self.place)
        absent = jobs[..., :k].sum(dim=2) == 0
        absent = absent & ~absent.all(dim=1, keepdim=True)  # attention needs somebody to attend to
        seen = self.decoder(self.job(jobs), servers, tgt_key_padding_mask=absent)
        own = jobs[..., k + 4 : k + 4 + 2 * m].reshape(b, of.slots, m, 2)
        pairs = self.of_job(seen)[:, :, None] + self.of_server(servers)[:, None] + self.of_tasks(own)
        scores = self.score(pairs.relu()).transpose(2, 3).reshape(b, -1)
        mean = (seen * ~absent[..., None]).mean(dim=1)
        end = self.end_score(self.end(torch.cat([mean, servers.mean(dim=1), more], dim=1)))
        return torch.cat([scores, end], dim=1)


def policy_network(settings: HarmonySettings) -> nn.Module:
    """Return the network of the architecture."""
    return Attention(settings) if settings.architecture == "attention" else FeedForward(settings)


def log_probabilities(network: nn.Module, rows: Tensor, mask: Tensor) -> Tensor:
    """Return the logarithm of the probability of each action, minus infinity where it is not allowed."""
    return network(rows.float()).masked_fill(~mask, float("-inf")).log_softmax(dim=1)


class HarmonyPolicy(NetworkPolicy):
    """A policy of `gangplan.systems.interference`, see `baselines.Policy` there."""

    recipe, config, make = NAME, HarmonySettings, policy_network

    def place(self, env: Environment) -> None:
        """Place tasks of waiting jobs, once an interval.

        Raises:
            InstanceError: if the environment has other servers or types than the policy is for.
        """
        lane = Lane(env, self.settings)
        with torch.inference_mode(), one_thread():
            while (mask := lane.mask)[:-1].any():
                action = int(mask.argmax())
                if mask.sum() > 1:
                    logs = log_probabilities(self.network, torch.from_numpy(lane.seen[None]), torch.from_numpy(mask))
                    action = int(logs.argmax())
                if action == len(mask) - 1:
                    break
                lane.place(action)
                lane.look()
