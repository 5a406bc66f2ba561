"""Gradients written out are autograd's, on the modules of torch itself.

Planted once and caught: the state's part of the critic's gradient in the actor's features, a derivative of tanh taken
where the layer before it lies, cut-off ratios that still count, a log_std without its own constant part.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lab.learning.test_ppo import CHOICES, MIXED, NUMBERS, STATE, WIDTH, Stream, learner
from torch import Tensor
from torch._functorch.config import patch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from training_kit import tiny, trained

from heron_env.core.action import ActionSpec
from heron_env.errors import ConfigError
from heron_env.lab.learning.ppo import CLIP, VALUE_WEIGHT, ActorCritic, Learner
from heron_env.lab.learning.train import _device
from heron_env.lab.trained import NetworkPolicy

ROWS = 40


def minibatch(student: Learner, spec: ActionSpec, masked: bool) -> dict[str, Tensor]:
    """Invented decisions `[3, n]`, some of which had no effect, with probabilities far from those of now."""
    some = torch.Generator().manual_seed(3)
    shape = (3 if student.settings.gru else 1, ROWS)
    batch = {
        name: torch.randn(*shape, width, generator=some)
        for name, width in (("obs", WIDTH), ("state", STATE), ("hidden", student.settings.gru))
    }
    batch |= {name: torch.randn(shape, generator=some) for name in ("return", "gain")}
    batch["took"] = (torch.rand(shape, generator=some) < 0.8).float()
    choices = int(spec.ncats.sum())
    if masked:
        batch["mask"] = torch.rand(*shape, choices, generator=some) < 0.6
        batch["mask"][..., [0, *torch.tensor(spec.ncats).cumsum(0)[:-1].tolist()]] = True
    outputs = torch.zeros(shape[0] * ROWS, spec.dim_c + choices)
    allowed = batch["mask"].flatten(0, 1) if masked else None
    with torch.no_grad():
        actions = student.network.draw(outputs, allowed, some)
        likely = student.network.log_probability(outputs, actions, allowed).value
    batch["action"] = actions.reshape(*shape, -1)
    batch["likely"] = likely.reshape(shape) + 0.3 * torch.randn(shape, generator=some)
    return batch


def loss(student: Learner, batch: dict[str, Tensor], mine: Tensor) -> tuple[Tensor, Tensor]:
    """PPO's, as the textbook has it, by torch's own modules and distributions; and the ratios."""
    network, spec = student.network, (student.network.numbers, student.network.ncats)
    seen = batch["obs"]
    if network.units:
        seen = torch.cat([seen, network.memory(seen, batch["hidden"][:1])[0]], dim=-1)
    outputs = network.action_net(network.mlp_extractor["policy_net"](seen))[mine]
    both = torch.cat([seen, batch["state"]], dim=-1)
    values = network.value_net(network.mlp_extractor["value_net"](both))[..., 0][mine]
    batch = {name: column[mine] for name, column in batch.items()}
    numbers, ncats = spec
    likely = torch.zeros(len(values))
    if numbers:
        normal = torch.distributions.Normal(outputs[:, :numbers], network.log_std.exp())
        likely = normal.log_prob(batch["action"][:, :numbers]).sum(-1)
    logits = outputs[:, numbers:]
    logits = logits.masked_fill(~batch["mask"], -torch.inf) if "mask" in batch else logits
    for number, part in enumerate(torch.split(logits, ncats, dim=-1) if ncats else ()):
        likely = likely + torch.distributions.Categorical(logits=part).log_prob(batch["action"][:, numbers + number])
    ratio = (likely - batch["likely"]).exp()
    took = batch["took"] > 0.0
    gain = (batch["gain"] - batch["gain"][took].mean()) / (batch["gain"][took].std() + 1e-8)
    better = torch.minimum(gain * ratio, gain * ratio.clamp(1.0 - CLIP, 1.0 + CLIP))
    return VALUE_WEIGHT * ((values - batch["return"]) ** 2).mean() - better[took].mean(), ratio


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (8,), (9, 7, 6)])
@pytest.mark.parametrize("spec,masked", [(NUMBERS, False), (CHOICES, True), (MIXED, True), (MIXED, False)])
@pytest.mark.parametrize("gru", [0, 5])
def test_gradients_are_those_of_autograd(
    spec: ActionSpec, masked: bool, gru: int, hidden: tuple[int, ...], activation: str
):
    student = learner(spec, masked=masked, gru=gru, hidden=hidden, activation=activation)
    batch = minibatch(student, spec, masked)
    mine = torch.rand(batch["took"].shape, generator=torch.Generator().manual_seed(5)) < (0.7 if gru else 2.0)
    gradient: Any = student._weights.grad
    true, ratio = loss(student, batch, mine)
    assert ((ratio - 1.0).abs() > CLIP).sum() > 5 and batch["took"].min() == 0.0
    true.backward()
    expected = gradient.clone()
    student.optimizer.step = lambda: None  # type: ignore[method-assign]
    losses = student._improve(batch, mine if gru else None)
    expected *= min(1.0, 0.5 / (float(expected.norm()) + 1e-6))
    assert torch.allclose(gradient, expected, rtol=0.0, atol=1e-6) and expected.norm() > 0.1
    assert float(losses[0] + VALUE_WEIGHT * losses[1]) == pytest.approx(true.item(), abs=1e-5)


def test_a_policy_of_relu_is_kept_and_loaded_as_one(tmp_path: Path):
    run = trained(tmp_path / "run", hyperparameters=tiny(activation="relu"))
    group, kept = next(iter(run.config.groups.items()))
    assert kept.activation == "relu" and run.config.hyperparameters["activation"] == "relu"
    policy = run.policies()[group]
    assert isinstance(policy, NetworkPolicy)
    seen, x = torch.randn(50, len(kept.center), generator=torch.Generator().manual_seed(1)), run.weights(group)
    x = {name: torch.from_numpy(array) for name, array in x.items()}
    made = seen
    for layer in (0, 2):
        name = f"mlp_extractor.policy_net.{layer}"
        made = torch.relu(made @ x[f"{name}.weight"].T + x[f"{name}.bias"])
    outputs = made @ x["action_net.weight"].T + x["action_net.bias"]
    assert np.allclose(policy.network(seen.numpy()), outputs.numpy(), atol=1e-5)
    again = run.make().run_synchronous(run.policies(), seed=2_000_000)  # while training it was measured as what it is
    assert run.config.validation["trained"] == again.returns[run.config.return_of]


@pytest.mark.parametrize("spec,masked", [(NUMBERS, False), (CHOICES, True), (MIXED, True)])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_all_of_an_update_is_on_the_device(
    spec: ActionSpec, masked: bool, activation: str, monkeypatch: pytest.MonkeyPatch
):
    """torch's fake tensors have no values, and refuse whatever mixes devices."""
    student = learner(spec, masked=masked, activation=activation, batch_size=8, n_epochs=2)
    stream = Stream(student, 3, spec, masked)
    for _ in range(20):
        stream.call()
        stream.decide()
    stream.call()
    student._weigh()
    monkeypatch.setattr(student, "_weigh", lambda: None)  # of rows, on the CPU
    monkeypatch.setattr(FakeTensor, "tolist", lambda tensor: [tensor.device.type] * len(tensor))
    fused = sys.modules["torch.optim.optimizer"]
    monkeypatch.setattr(fused, "_get_fused_kernels_supported_devices", lambda: ["meta"])
    cpu, card = torch.device("cpu"), torch.device("meta")
    build = partial(ActorCritic, WIDTH, STATE, spec, student.settings, -0.5)
    with patch(fake_tensor_allow_meta=True), FakeTensorMode(allow_non_fake_inputs=True):
        student._learn_on(card, build)
        losses = student.learn(1e-3)
        assert (student._weights + student._weights.grad).device == card
    assert set(losses.values()) == {"meta"}
    assert {weight.device for weight in student._learning.parameters()} == {card}
    assert {weight.device for weight in student.network.parameters()} == {cpu}


def test_the_device_is_the_cpu_unless_a_card_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    runs = [
        trained(tmp_path / str(number), **options)
        for number, options in enumerate([{}, {"device": "cpu"}, {"device": "auto"}])
    ]
    assert {run.config.device for run in runs} == {"cpu"}
    models = [(run.path / kept.model).read_bytes() for run in runs for kept in run.config.groups.values()]
    assert len(set(models)) == 1
    with pytest.raises(ConfigError, match=r"train\(device='cuda'\): torch finds no card here; write device='auto'"):
        trained(tmp_path / "card", device="cuda")
    with pytest.raises(ConfigError, match=r"train\(device='gpu'\): must be one of \('cpu', 'cuda', 'auto'\)"):
        trained(tmp_path / "card", device="gpu")
    assert not (tmp_path / "card").exists()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [_device(wanted) for wanted in ("cpu", "cuda", "auto")] == ["cpu", "cuda", "cuda"]


def test_nobody_may_ask():
    student = learner(gru=4)
    outputs, values, _ = student.network(torch.zeros(1, 0, WIDTH), torch.zeros(1, 0, STATE), torch.zeros(0, 4))
    assert outputs.shape == (1, 0, 2) and values.shape == (1, 0)
