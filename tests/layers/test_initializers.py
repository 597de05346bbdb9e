"""Start values of weights: their distributions, and that no two weights have the same ones."""

import numpy as np
import pytest
from helpers import small_models

from tfmann.layers import initializers
from tfmann.layers.rnn import gate_bias

SHAPE = 300, 500


@pytest.mark.parametrize(
    "init_op, deviation, greatest",
    [
        ("uniform", 0.7 / 3**0.5, 0.7),
        ("normal", 0.7, np.inf),
        ("glorot_normal", (2 / 800) ** 0.5, np.inf),
        ("glorot_uniform", (2 / 800) ** 0.5, (6 / 800) ** 0.5),
    ],
)
def test_each_distribution_has_its_deviation_and_bound(init_op, deviation, greatest):
    """Glorot & Bengio 2010, equations 12 and 16: a variance of 2 / (fan in + fan out)."""
    values = initializers.draw(init_op, 0.7, SHAPE, np.random.default_rng(3))
    assert values.shape == SHAPE
    assert values.std() == pytest.approx(deviation, rel=0.01)
    assert abs(values.mean()) < 0.02 * deviation and np.abs(values).max() <= greatest
    if greatest < np.inf:
        assert np.abs(values).max() > 0.99 * greatest


def test_recurrent_kernels_are_orthogonal_gate_by_gate():
    model = small_models.model("luong", recurrent_init_op="orthogonal")
    kernel = small_models.arrays(model)["cell/stack/layer_0/recurrent_kernel"]
    blocks = np.split(kernel, kernel.shape[1] // 8, axis=1)
    assert len(blocks) == 4
    for block in blocks:
        np.testing.assert_allclose(block @ block.T, np.eye(8), atol=1e-6)
    assert not np.allclose(blocks[0], blocks[1])


def test_orthogonal_matrices_are_uniform_over_rotations():
    """Without the signs of R the first entry of each would be negative (Mezzadri 2007)."""
    stream = np.random.default_rng(5)
    first = np.array([initializers._orthogonal(4, stream)[0, 0] for _ in range(400)])
    assert 0.4 < (first > 0).mean() < 0.6


def test_only_the_forget_gate_of_an_lstm_has_a_bias():
    np.testing.assert_array_equal(gate_bias("lstm", 2, 1.5), [0, 0, 1.5, 1.5, 0, 0, 0, 0])
    assert not gate_bias("gru", 2, 1.5).any()


def test_embeddings_have_a_distribution_of_their_own():
    model = small_models.model(
        "luong", init_op="uniform", init_weight=0.01,
        embedding_init_op="normal", embedding_init_weight=2.0,
    )  # fmt: skip
    weights = small_models.arrays(model)
    tables = [value for name, value in weights.items() if "embedding" in name]
    assert len(tables) == 2
    assert all(table.std() == pytest.approx(2.0, rel=0.2) for table in tables)
    assert np.abs(weights["cell/stack/layer_0/kernel"]).max() <= 0.01


def test_weights_of_one_shape_differ():
    """Each is drawn by its whole name, such as those of both directions of an encoder."""
    model = small_models.model("kvmematt-3", embedding_size=8)
    drawn = {}
    for name, value in small_models.arrays(model).items():
        if value.ndim == 2 and "bias" not in name:
            drawn.setdefault(value.shape, []).append((name, value))
    pairs = 0
    for same_shape in drawn.values():
        for number, (name, value) in enumerate(same_shape):
            for other, other_value in same_shape[:number]:
                pairs += 1
                assert not np.allclose(value, other_value), (name, other)
    assert pairs > 20
