"""PPO on rows: decisions of agents that see and act at their own times (a semi-Markov decision process).

A decision is whole when its next row, or its end, has come; what is under way when an update falls due stays for the
next one. With R the discounted reward that a decision brought in k control steps, and V' the value of what came then,

    delta = R + gamma^k (1 - terminated) V' - V,    advantage = delta + gamma^k lambda * the next decision's advantage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heron_env.core.action import ActionSpec
from heron_env.envs.batch.rows import Bools, Floats, Ints, Vectors
from heron_env.lab.learning.rows import DecisionRewards, PolicyInputs
from heron_env.seeding import key

if TYPE_CHECKING:
    from heron_env.lab.learning.train import Hyperparameters

aten = torch.ops.aten
LOSSES = ("policy_gradient_loss", "value_loss", "approx_kl", "clip_fraction")
"""Of an update, as Stable-Baselines3 names them."""
CLIP, VALUE_WEIGHT, MOST_GRADIENT = 0.2, 0.5, 0.5
"""How far a probability ratio counts; weight of the value's loss; longest gradient."""
WARM_UP, LENGTH = 8, 16
"""Decisions on which a memory warms up before a window, and the most that are learned from in one."""


# The network. Its gradients are written out: with autograd a training takes 1.3 to 1.5 times as long. Only that of the
# recurrent layer is left to it, which goes on from the gradient of what it made.


class LogProbability(NamedTuple):
    """Of actions, `[n]`; its derivative by outputs, `[n, k]`; squared distances of numbers in std, `[n, l]`."""

    value: Tensor
    by_outputs: Tensor
    squares: Tensor


class Passed(NamedTuple):
    """What went into each layer of actor and critic, and what came out of the last: `[n, width]` each."""

    actor: list[Tensor]
    critic: list[Tensor]


class ActorCritic(nn.Module):
    """What acts and what values; its tensors are called as those of Stable-Baselines3, so that either loads the other.

    With `gru` units both see, beside the observation, what a recurrent layer over all observations so far remembers.
    What acts never sees the state. Numbers come from a normal distribution around the outputs, choices from logits.
    """

    def __init__(self, obs: int, state: int, spec: ActionSpec, settings: Hyperparameters, log_std: float) -> None:
        super().__init__()
        self.numbers, self.ncats = spec.dim_c, [int(n) for n in spec.ncats]
        width, last = obs + settings.gru, (settings.hidden or (obs + settings.gru,))[-1]
        if settings.gru:
            self.memory = nn.GRU(obs, settings.gru)
        self.units, self._relu = settings.gru, settings.activation == "relu"
        actor, critic = (_tower(inputs, settings) for inputs in (width, width + state))
        self.mlp_extractor = nn.ModuleDict({"policy_net": actor, "value_net": critic})
        self.action_net = _linear(last, self.numbers + sum(self.ncats), 0.01)
        self.value_net = _linear(last if settings.hidden else width + state, 1, 1.0)
        if self.numbers:
            self.log_std = nn.Parameter(torch.full((self.numbers,), log_std))
        self._actor = [*_layers(actor), self.action_net]
        self._critic = [*_layers(critic), self.value_net]

    def forward(self, obs: Tensor, state: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`[t, n, d]`, `[t, n, s]`, `[n, units]` -> outputs `[t, n, k]`, values `[t, n]`, hidden then `[n, units]`."""
        features, hidden = self.features(obs, hidden)
        passed = self.through(features.flatten(0, 1), state.flatten(0, 1))
        outputs, values = (layers[-1].view(*obs.shape[:2], layers[-1].shape[1]) for layers in passed)
        return outputs, values[..., 0], hidden

    def features(self, obs: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """What is seen and remembered, `[t, n, d + units]`, and hidden then."""
        if not self.units:
            return obs, hidden
        remembered, after = self.memory(obs, hidden[None])
        return torch.cat([obs, remembered], dim=-1), after[0]

    def through(self, features: Tensor, state: Tensor) -> Passed:
        """Run the layers on features `[n, d + units]` and states `[n, s]`."""
        both = torch.cat([features, state], dim=-1) if state.shape[-1] else features
        return Passed(self._run(self._actor, features), self._run(self._critic, both))

    def _run(self, layers: Sequence[nn.Linear], x: Tensor) -> list[Tensor]:
        passed = [x]
        for layer in layers[:-1]:
            if self._relu:
                passed.append(torch.addmm(layer.bias, passed[-1], layer.weight.t()).relu_())
            else:  # tanh x = 2 sigmoid 2x - 1, in less than half the time of torch.tanh
                twice = torch.addmm(layer.bias, passed[-1], layer.weight.t(), beta=2.0, alpha=2.0)
                passed.append(torch.rsub(twice.sigmoid_(), -1.0, alpha=-2.0))
        return [*passed, torch.addmm(layers[-1].bias, passed[-1], layers[-1].weight.t())]

    def backward(self, passed: Passed, likely: LogProbability, by_likely: Tensor, by_values: Tensor) -> None:
        """Write all gradients, from those of the log-probabilities `[n]` and of the values `[n]`."""
        features = passed.actor[0]
        obs = self._back(self._actor, passed.actor, likely.by_outputs * by_likely[:, None])
        both = self._back(self._critic, passed.critic, by_values[:, None])
        if self.numbers:
            torch.sub(by_likely @ likely.squares, by_likely.sum(), out=self.log_std.grad)
        if self.units:
            features.backward(obs + both[:, : features.shape[1]])  # type: ignore[no-untyped-call]

    def _back(self, layers: Sequence[nn.Linear], passed: Sequence[Tensor], slope: Tensor) -> Tensor:
        """The gradient of what went into the first layer, if something remembers."""
        for number in reversed(range(len(layers))):
            layer, x = layers[number], passed[number]
            torch.mm(slope.t(), x, out=layer.weight.grad)
            torch.sum(slope, dim=0, out=layer.bias.grad)
            if number or self.units:
                slope = slope @ layer.weight
            if number:
                slope = aten.threshold_backward(slope, x, 0.0) if self._relu else aten.tanh_backward(slope, x)
        return slope

    def draw(self, outputs: Tensor, allowed: Tensor | None, generator: torch.Generator) -> Tensor:
        """Actions `[n, numbers + choices]`, numbers in units of half their range, not yet cut off."""
        parts = []
        if self.numbers:
            noise = torch.randn(outputs[:, : self.numbers].shape, generator=generator)
            parts.append(outputs[:, : self.numbers] + self.log_std.exp() * noise)
        for logits in self._logits(outputs, allowed):
            u = torch.rand(logits.shape, generator=generator).clamp_min(1e-20)
            parts.append((logits - torch.log(-torch.log(u))).argmax(dim=-1, keepdim=True).float())
        return torch.cat(parts, dim=-1)

    def log_probability(self, outputs: Tensor, actions: Tensor, allowed: Tensor | None) -> LogProbability:
        """Of actions `[n, numbers + choices]`."""
        value, slopes, squares = outputs.new_zeros(len(outputs)), [], outputs[:, :0]
        if self.numbers:
            unit = torch.exp(-self.log_std)
            away = (actions[:, : self.numbers] - outputs[:, : self.numbers]) * unit
            slopes, squares = [away * unit], away * away
            value = -0.5 * squares.sum(dim=-1) - (self.log_std + 0.5 * np.log(2.0 * np.pi)).sum()
        for number, logits in enumerate(self._logits(outputs, allowed)):
            chosen = actions[:, self.numbers + number].long()[:, None]
            every = torch.log_softmax(logits, dim=-1)
            value = value + every.gather(-1, chosen)[:, 0]
            slopes.append((-every.exp()).scatter_add_(-1, chosen, torch.ones_like(outputs[:, :1])))
        return LogProbability(value, torch.cat(slopes, dim=-1), squares)

    def _logits(self, outputs: Tensor, allowed: Tensor | None) -> Sequence[Tensor]:
        if not self.ncats:
            return ()
        logits = outputs[:, self.numbers :]
        logits = logits if allowed is None else logits.masked_fill(~allowed, -torch.inf)
        return torch.split(logits, self.ncats, dim=-1)


def _layers(tower: nn.Module) -> list[nn.Linear]:
    return [layer for layer in tower.children() if isinstance(layer, nn.Linear)]


def _tower(width: int, settings: Hyperparameters) -> nn.Sequential:
    """The hidden layers, from so many inputs."""
    layers: list[nn.Module] = []
    for before, after in pairwise((width, *settings.hidden)):
        layers += [_linear(before, after, 2.0**0.5), nn.ReLU() if settings.activation == "relu" else nn.Tanh()]
    return nn.Sequential(*layers)


def _linear(width: int, outputs: int, gain: float) -> nn.Linear:
    """A layer with orthogonal weights of this gain, and no bias yet."""
    layer = nn.Linear(width, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


# What learns

COLUMNS = {
    "slot": np.int64, "first": np.bool_, "value": np.float32, "likely": np.float32, "reward": np.float64,
    "steps": np.int64, "took": np.bool_, "after": np.float32, "next": np.int64, "whole": np.bool_, "old": np.bool_,
    "call": np.int64,
}  # fmt: skip
"""Of a decision: value and log-probability when it fell, what it brought, the value of what came after (0 where nothing
does), where its agent's next decision stands (-1: there is none), is all that known, has it been learned from, and in
which call of all was it made?"""


BATCH_COLUMNS = ("obs", "state", "hidden", "mask", "action", "likely", "value", "took")
"""What an update takes as it was kept."""


class Learner:
    """One policy, its decisions under way, and those to learn from.

    Args: slots: how many agents it decides for, over all lanes; obs, state: widths of what actor and critic see;
        corrects: is there a rule that it corrects?; masked: may choices be forbidden?; seed: of the network, of
        actions, and of the order of minibatches; agents: of each lane, one slot after the other; device: of torch,
        where weights are improved; rows are always answered on the CPU, by a copy of them.

    Attributes: network: that copy; what is put into it, the next update goes on from.
    """

    def __init__(
        self, slots: int, obs: int, state: int, spec: ActionSpec, settings: Hyperparameters, *, corrects: bool,
        masked: bool, seed: int, agents: int = 1, device: str = "cpu",
    ) -> None:  # fmt: skip
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            log_std = (-2.0 if corrects else 0.0) if settings.log_std is None else settings.log_std
            build = partial(ActorCritic, obs, state, spec, settings, log_std)
            self.network = build()
        self.settings, self.generator = settings, torch.Generator().manual_seed(key(seed, "actions") % 2**63)
        self._acting = _in_one(self.network)
        self._learn_on(torch.device(device), build)
        widths = {"obs": obs, "state": state, "action": spec.size, "hidden": settings.gru}
        widths["outputs"] = spec.dim_c + int(np.sum(spec.ncats))
        self._columns: dict[str, NDArray[Any]] = {name: np.zeros(0, dtype=kind) for name, kind in COLUMNS.items()}
        self._columns |= {name: np.zeros((0, width), dtype=np.float32) for name, width in widths.items()}
        if masked and spec.dim_d:
            self._columns["mask"] = np.zeros((0, int(spec.ncats.sum())), dtype=bool)
        lane, place = np.divmod(np.arange(slots), agents)
        self._twin = lane // settings.twins * agents + place
        self.count, self.whole, self._weighed, self._call, self._calls = 0, 0, 0, 0, [0]
        self._open = np.full(slots, -1, dtype=np.int64)
        self._hidden = np.zeros((slots, settings.gru), dtype=np.float32)

    def _learn_on(self, device: torch.device, build: Callable[[], ActorCritic]) -> None:
        """Improve weights on this device from now on."""
        self._device, self._learning, self._weights = device, self.network, self._acting
        if device.type != "cpu":
            with device:
                self._learning = build()
            self._weights = _in_one(self._learning)
        self.optimizer = torch.optim.Adam([self._weights], lr=self.settings.learning_rate, eps=1e-5, fused=True)

    def column(self, name: str) -> NDArray[Any]:
        """Of all decisions that are kept, in the order in which they fell."""
        return self._columns[name][: self.count]

    # Collecting

    def end(self, inputs: PolicyInputs, brought: DecisionRewards, cut_off: NDArray[np.bool_]) -> None:
        """Agents have ended, the last decision of each is whole; only where a limit cut one off is there a future."""
        after = np.zeros(len(cut_off), dtype=np.float32)
        if cut_off.any():
            parts = (inputs.obs[cut_off], inputs.state[cut_off], self._hidden[inputs.slot[cut_off]])
            after[cut_off] = self._ask(*parts)[1].numpy()
        self._close(inputs.slot, brought, after, np.full(len(cut_off), -1))
        self._open[inputs.slot] = -1

    def ask(self, inputs: PolicyInputs, brought: DecisionRewards) -> None:
        """Rows have come: the decisions before are whole, and new ones wait for `decide`."""
        self._hidden[inputs.slot[inputs.first]] = 0.0
        self.inputs, self._answer = inputs, self._ask(inputs.obs, inputs.state, self._hidden[inputs.slot])
        later = ~inputs.first
        rewards = DecisionRewards(brought.reward[later], brought.steps[later], brought.took[later])
        self._close(inputs.slot[later], rewards, self._answer[1].numpy()[later], self.count + np.flatnonzero(later))

    def decide(self) -> Vectors:
        """Actions `[n, k]` of the rows that came last, drawn from the policy."""
        inputs, (outputs, values, hidden) = self.inputs, self._answer
        allowed = None if inputs.mask is None else torch.from_numpy(inputs.mask)
        with torch.no_grad():
            actions = self.network.draw(outputs, allowed, self.generator)
        first, last = self.count, self.count + len(inputs.slot)
        self._make_room(last)
        fresh = {
            "slot": inputs.slot, "first": inputs.first, "obs": inputs.obs, "state": inputs.state,
            "value": values.numpy(), "outputs": outputs.numpy(), "action": actions.numpy(), "call": self._call,
            "hidden": self._hidden[inputs.slot], "next": -1, "whole": False, "old": False,
        }  # fmt: skip
        for name, part in (fresh if inputs.mask is None else {**fresh, "mask": inputs.mask}).items():
            self._columns[name][first:last] = part
        self.count, self._call = last, self._call + 1
        self._calls.append(last)
        self._open[inputs.slot] = np.arange(first, last)
        self._hidden[inputs.slot] = hidden.numpy()
        return np.asarray(actions.numpy())

    @torch.no_grad()
    def _ask(self, obs: Vectors, state: Vectors, hidden: Vectors) -> tuple[Tensor, Tensor, Tensor]:
        parts = [torch.from_numpy(np.ascontiguousarray(part)) for part in (obs, state, hidden)]
        outputs, values, after = self.network(parts[0][None], parts[1][None], parts[2])
        return outputs[0], values[0], after

    def _close(self, slot: Ints, brought: DecisionRewards, after: Vectors, number: Ints) -> None:
        at = self._open[slot]
        waiting = at >= 0  # an agent may end that has never decided
        at = at[waiting]
        for name, part in {**brought._asdict(), "after": after, "next": number}.items():
            self._columns[name][at] = part[waiting]
        self._columns["whole"][at] = True
        self.whole += len(at)

    def _make_room(self, count: int) -> None:
        if count > len(self._columns["slot"]):
            for name, column in self._columns.items():
                self._columns[name] = np.zeros((max(2 * count, 1024), *column.shape[1:]), dtype=column.dtype)
                self._columns[name][: self.count] = column[: self.count]

    # Learning

    def learn(self, rate: float, stops: Callable[[], bool] = bool) -> dict[str, float]:
        """Improve on all decisions that are whole, forget them, and look at the rows that wait with new eyes.

        `stops` is asked before each minibatch. Returns the means of `LOSSES` over those that were improved on.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._weights.data.copy_(self._acting.data)
        self._weigh()
        gains, value = self.gains(), self.column("value")
        values = {name: torch.from_numpy(self.column(name)) for name in BATCH_COLUMNS if name in self._columns}
        values["return"] = torch.from_numpy((gains + value).astype(np.float32))
        values["gain"] = torch.from_numpy((gains - self.of_twins(gains)).astype(np.float32))
        values = {name: column.to(self._device) for name, column in values.items()}
        values["took"] = values["took"].float()
        epochs = range(self.settings.n_epochs if self.whole else 0)
        batches = (batch for _ in epochs for batch in self._minibatches(values))
        losses = [self._improve(part, mine) for part, mine in takewhile(lambda _: not stops(), batches)]
        self._acting.data.copy_(self._weights.data)
        self._forget()
        self._answer = self._ask(self.inputs.obs, self.inputs.state, self._hidden[self.inputs.slot])
        return dict(zip(LOSSES, torch.stack(losses).mean(dim=0).tolist(), strict=True)) if losses else {}

    @torch.no_grad()
    def _weigh(self) -> None:
        """How likely the decisions since the last update were, all at once."""
        fresh = slice(self._weighed, self.count)
        outputs, actions = (torch.from_numpy(self.column(name)[fresh]) for name in ("outputs", "action"))
        mask = torch.from_numpy(self.column("mask")[fresh]) if "mask" in self._columns else None
        self.column("likely")[fresh] = self.network.log_probability(outputs, actions, mask).value.numpy()

    def gains(self) -> Floats:
        """Advantages `[n]` of all decisions that are kept; of one that is under way nothing is known yet."""
        reward, steps, value, after = (self.column(name) for name in ("reward", "steps", "value", "after"))
        gamma, lam = self.settings.gamma, self.settings.gae_lambda
        return advantages(reward, steps, value, after, self._following(), self._calls, gamma=gamma, lam=lam)

    def of_twins(self, gains: Floats) -> Floats:
        """`[n]`: mean gain of what the same agent decided at the same time in the other lanes of its days, or 0."""
        if self.settings.twins == 1:
            return np.zeros(len(gains))
        moment = self.column("call") * len(self._twin) + self._twin[self.column("slot")]
        where = np.unique(moment, return_inverse=True)[1]
        usable = self.column("whole") & ~self.column("old")
        others = np.bincount(where, usable)[where] - usable
        total = np.bincount(where, gains * usable)[where] - gains * usable
        return np.asarray(total / np.maximum(others, 1.0))

    def _following(self) -> Ints:
        """The next decision of each one's agent, if that is whole too; else -1."""
        following = self.column("next").copy()
        following[following >= self.count] = -1
        following[~self.column("whole")[following] & (following >= 0)] = -1
        return following

    def _minibatches(self, table: dict[str, Tensor]) -> Iterator[tuple[dict[str, Tensor], Tensor | None]]:
        """Parts `[t, n]` of the table, in random order, and which of it is learned from (None: all)."""
        usable, settings, some = self.column("whole") & ~self.column("old"), self.settings, None
        if settings.gru:
            index, mine = windows(self.column("slot"), self.column("first"), self.column("whole"), usable)
            some = torch.from_numpy(mine)
        else:
            index = np.flatnonzero(usable)[None]
        columns = index.shape[1]
        order = torch.randperm(columns, generator=self.generator)
        number = min(max(round(int(usable.sum()) / settings.batch_size), 1), columns)
        mixed = torch.from_numpy(index)[:, order].to(self._device)
        parts = [torch.tensor_split(_rows_at(column, mixed), number, dim=1) for column in table.values()]
        chosen = [None] * number if some is None else torch.tensor_split(some[:, order].to(self._device), number, dim=1)
        for part, which in zip(zip(*parts, strict=True), chosen, strict=True):
            yield dict(zip(table, part, strict=True)), which

    def _improve(self, batch: dict[str, Tensor], mine: Tensor | None) -> Tensor:
        """One step of gradient descent on a minibatch `[t, n]`; its `LOSSES`."""
        gradient = self._weights.grad
        assert gradient is not None
        gradient.zero_()
        features, which = self._learning.features(batch["obs"], batch["hidden"][0])[0], 0 if mine is None else mine
        losses = self._losses(features[which], {name: column[which] for name, column in batch.items()})
        gradient *= (MOST_GRADIENT / (gradient.dot(gradient).sqrt() + 1e-6)).clamp_max(1.0)
        self.optimizer.step()
        return losses

    @torch.no_grad()
    def _losses(self, features: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """PPO's clipped loss and that of the values for decisions `[n]`, as `LOSSES`; its gradients by all weights."""
        passed, took, gain = self._learning.through(features, batch["state"]), batch["took"], batch["gain"]
        number = took.sum().clamp_min(1.0)
        gain = gain - took.dot(gain) / number
        spread = (took.dot(gain * gain) / (number - 1.0).clamp_min(1.0)).sqrt() + 1e-8
        gain = took * gain / (spread * number)
        likely = self._learning.log_probability(passed.actor[-1], batch["action"], batch.get("mask"))
        change = likely.value - batch["likely"]
        ratio = torch.exp(change)
        clamped = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
        plain = gain * ratio
        better = torch.minimum(plain, gain * clamped)
        wrong = passed.critic[-1][:, 0] - batch["return"]
        by_likely = torch.where(better == plain, -plain, 0.0)  # where the ratio is cut off it no longer counts
        self._learning.backward(passed, likely, by_likely, wrong * (2.0 * VALUE_WEIGHT / len(wrong)))
        divergence = took.dot(ratio - 1.0 - change) / number
        cut_off = took.dot((ratio != clamped).float()) / number
        return torch.stack([-better.sum(), wrong.dot(wrong) / len(wrong), divergence, cut_off])

    def _forget(self) -> None:
        """Keep what is under way, and of each agent what a memory warms up on."""
        under_way = ~self.column("whole")
        keep = under_way.copy()
        if self.settings.gru:
            keep[last_of_each(self.column("slot"))] = True
        rest = np.flatnonzero(keep)
        for name in self._columns:
            self._columns[name][: len(rest)] = self._columns[name][rest]
        self.count, self.whole, self._weighed, self._calls = len(rest), 0, len(rest), [0, len(rest)]
        self._columns["old"][: self.count] = self.column("whole")
        self._open[self.column("slot")[~self.column("whole")]] = np.flatnonzero(~self.column("whole"))


def advantages(
    reward: Floats, steps: Ints, value: Vectors, after: Vectors, following: Ints, calls: Sequence[int], *,
    gamma: float, lam: float,
) -> Floats:  # fmt: skip
    """Generalised advantage estimates of decisions `[n]`.

    Args: following: where the next decision of the same agent stands, always later; -1 where its advantage is unknown;
        calls: bounds of what was decided at once, from 0 to n: nothing in it follows anything in it.
    """
    shrink = gamma**steps
    result = reward + shrink * after - value
    for first, last in reversed(list(pairwise(calls))):
        later = following[first:last]
        result[first:last] += np.where(later >= 0, shrink[first:last] * lam * result[later], 0.0)
    return np.asarray(result)


def windows(slot: Ints, first: Bools, usable: Bools, chosen: Bools) -> tuple[Ints, Bools]:
    """Numbers of decisions `[t, n]`, a window in each column, and which of them are learned from.

    Decisions `[m]` stand in the order in which they fell. Each chosen one is in one window as such; before it stand up
    to WARM_UP others of its agent and episode. Short windows are filled up with their last decision.

    Args: slot: of each decision; first: does an episode begin with it?; usable: others are left out; chosen: those to
        learn from; in each run behind all that are not.
    """
    order = np.flatnonzero(usable)
    order = order[np.argsort(slot[order], kind="stable")]
    if not len(order):
        return np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0), dtype=bool)
    begins = first[order] | np.append(True, np.diff(slot[order]) != 0)
    start = np.flatnonzero(begins)
    length = np.diff(np.append(start, len(order)))
    own = np.add.reduceat(chosen[order].astype(np.int64), start)
    pieces = -(-own // LENGTH)
    run = np.repeat(np.arange(len(start)), pieces)
    number = np.arange(len(run)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    low = length[run] - own[run] + number * LENGTH  # places in the run: the first that is learned from, and behind it
    high = np.minimum(low + LENGTH, length[run])
    warm = np.maximum(low - WARM_UP, 0)
    place = warm + np.arange(int((high - warm).max(initial=1)))[:, None]
    mine = (place >= low) & (place < high)
    return order[start[run] + np.minimum(place, high - 1)], mine


def last_of_each(slot: Ints) -> Ints:
    """Numbers of the last WARM_UP decisions of each agent, in the order in which they fell."""
    order = np.argsort(slot, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(slot[order])), len(order) - 1) + 1
    behind = np.repeat(ends, np.diff(np.append(0, ends))) - np.arange(len(order))
    return np.sort(order[behind <= WARM_UP])


def _rows_at(column: Tensor, where: Tensor) -> Tensor:
    """`column[where]`, faster."""
    return column.index_select(0, where.reshape(-1)).reshape(*where.shape, *column.shape[1:])


def _in_one(network: nn.Module) -> nn.Parameter:
    """All weights as one tensor, of which the network's own become parts, and so their gradients: one step of Adam."""
    weights = list(network.parameters())
    one = nn.Parameter(torch.cat([weight.detach().reshape(-1) for weight in weights]))
    one.grad = torch.zeros_like(one)
    sizes = [weight.numel() for weight in weights]
    parts = torch.split(one.data, sizes), torch.split(one.grad, sizes)
    for weight, values, gradient in zip(weights, *parts, strict=True):
        weight.data, weight.grad = values.view_as(weight), gradient.view_as(weight)
    return one
