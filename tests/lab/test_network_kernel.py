"""The one loop of networks over rows: each row alone, tanh to the last bit, and the textbook's sums.

Planted once and caught: sums of a row that begin with the row before's, a bias left out, the last layer squashed too,
tanh two partial quotients shorter.
"""

import pickle
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heron_env.lab.trained import Activation, Network


def network(sizes: list[int], seed: int, activation: Activation = "tanh") -> Network:
    rng = np.random.default_rng(seed)
    pairs = pairwise(sizes)
    return Network(
        tuple(
            (rng.normal(size=(a, b)).astype(np.float32), rng.normal(size=b).astype(np.float32)) for a, b in pairs
        ),
        activation,
    )  # fmt: skip


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.integers(0, 9), st.integers(0, 10**6))
def test_a_row_is_the_same_alone_and_among_many(sizes: list[int], n: int, seed: int):
    net = network(sizes, seed)
    rows = np.random.default_rng(seed + 1).normal(size=(n, sizes[0])).astype(np.float32)
    found = net(rows)
    assert found.shape == (n, sizes[-1]) and found.dtype == np.float32
    alone = [net(rows[i : i + 1])[0] for i in range(n)]
    assert found.tobytes() == b"".join(row.tobytes() for row in alone)
    assert net(rows[::-1])[::-1].tobytes() == found.tobytes()  # also of rows that lie elsewhere in memory


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.integers(0, 10**6), st.sampled_from(["tanh", "relu"]))
def test_it_is_the_textbooks(sizes: list[int], seed: int, activation: Activation):
    net = network(sizes, seed, activation)
    x = np.random.default_rng(seed + 1).normal(size=(3, sizes[0]))
    found = net(x.astype(np.float32))
    for number, (weights, bias) in enumerate(net.layers):
        x = x.astype(np.float32).astype(np.float64) if number == 0 else x
        x = x @ weights.astype(np.float64) + bias
        if number < len(net.layers) - 1:
            x = np.tanh(x) if activation == "tanh" else np.maximum(x, 0.0)
    assert np.allclose(found, x, rtol=1e-4, atol=1e-4)


def test_tanh_is_rounded_rightly_everywhere():
    """Two layers of weight 1 and bias 0 make tanh: within half a unit in the last place, and a hundredth."""
    one, none = np.ones((1, 1), dtype=np.float32), np.zeros(1, dtype=np.float32)
    x = np.concatenate([np.linspace(-12.0, 12.0, 400_001), np.logspace(-30.0, 0.0, 2_001), [np.inf, -np.inf]])
    x = x.astype(np.float32)
    found, true = Network(((one, none), (one, none)))(x[:, None])[:, 0], np.tanh(x.astype(np.float64))
    assert (np.abs(found - true) <= 0.51 * np.spacing(np.abs(true).astype(np.float32))).all()
    assert np.isnan(Network(((one, none), (one, none)))(np.array([[np.nan]], dtype=np.float32))).all()


def test_a_network_pickles_as_the_same():
    net = network([4, 8, 2], 1)
    rows = np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32)
    before = net(rows)
    assert pickle.loads(pickle.dumps(net))(rows).tobytes() == before.tobytes()
