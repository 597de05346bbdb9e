"""Masked lookup and sharpened links: constructed cases, slow sums, edges, gradients."""

import numpy as np
import pytest
import tensorflow as tf

from tfmann.memory import access, allocation

BATCH, HEADS, SLOTS, WIDTH = 3, 2, 5, 4
FLOOR = 1e-6


def draw(seed=3):
    stream = np.random.default_rng(seed)
    shape = [BATCH, HEADS, WIDTH]
    keys, masks = stream.normal(size=shape), stream.uniform(size=shape)
    memory = stream.normal(size=[BATCH, SLOTS, WIDTH])
    return [values.astype(np.float32) for values in (keys, memory, masks)]


def similarity(keys, memory):
    dots, squares = keys @ np.swapaxes(memory, 1, 2), np.sum(memory**2, axis=-1)
    return access.cosine_similarity(dots, keys, squares, FLOOR)


def test_a_masked_lookup_compares_masked_vectors():
    keys, memory, masks = draw()
    actual = access.masked_cosine_similarity(keys, memory, masks, FLOOR).numpy()
    for row, head, slot in np.ndindex(BATCH, HEADS, SLOTS):
        mask = masks[row, head].astype(np.float64)
        key, held = mask * keys[row, head], mask * memory[row, slot]
        lengths = [np.sqrt(np.sum(vector**2) + FLOOR) for vector in (key, held)]
        expected = key @ held / (lengths[0] * lengths[1] + 1e-8)
        assert actual[row, head, slot] == pytest.approx(expected, abs=1e-6)


def test_a_mask_of_ones_masks_nothing():
    keys, memory, masks = draw()
    masked = access.masked_cosine_similarity(keys, memory, np.ones_like(masks), FLOOR)
    np.testing.assert_allclose(masked, similarity(keys, memory), atol=1e-6)


def test_what_is_masked_out_has_no_say():
    keys, memory, masks = draw()
    masks[..., 1:] = 0.0
    before = access.masked_cosine_similarity(keys, memory, masks, FLOOR).numpy()
    unmasked = similarity(keys, memory).numpy()
    memory[..., 1:] = 7.0 * memory[..., :0:-1]
    after = access.masked_cosine_similarity(keys, memory, masks, FLOOR).numpy()
    np.testing.assert_array_equal(before, after)
    assert np.abs(before - unmasked).max() > 0.05


@pytest.mark.parametrize("blank", ["keys", "memory", "masks"])
def test_rows_of_zeros_have_finite_values_and_gradients(blank):
    parts = dict(zip(("keys", "memory", "masks"), map(tf.constant, draw())))
    parts[blank] = tf.zeros_like(parts[blank])
    with tf.GradientTape() as tape:
        tape.watch(parts)
        result = access.masked_cosine_similarity(**parts, floor=FLOOR)
        total = tf.reduce_sum(result * tf.random.stateless_normal(result.shape, [1, 2]))
    assert np.all(result == 0.0)
    for slope in tape.gradient(total, parts).values():
        assert np.all(np.isfinite(slope))


# what links lead to: one slot for the most part, another, a trace of noise
FAINT = np.array([0.6, 0.3, 0.0, 1e-8, 0.0], np.float32).reshape(1, 1, 1, SLOTS)


def test_sharp_links_are_powers_that_sum_to_one():
    stream = np.random.default_rng(4)
    weights = stream.dirichlet(np.ones(SLOTS), [BATCH, HEADS, 3]).astype(np.float32)
    sharpness = stream.uniform(1.0, 9.0, [BATCH, HEADS, 1]).astype(np.float32)
    actual = allocation.sharpen_moves(weights, sharpness).numpy()
    powers = (weights.astype(np.float64) + 1e-6) ** sharpness[:, :, None]
    np.testing.assert_allclose(actual, powers / powers.sum(axis=-1, keepdims=True), atol=1e-6)
    assert np.abs(actual - weights).max() > 0.1


def test_from_a_slot_without_a_link_all_slots_are_alike():
    nowhere = np.zeros([1, 1, 2, SLOTS], np.float32)
    nowhere[..., 1, 2] = -1e-5  # what rounding can leave
    sharpness = np.full([1, 1, 1], 4.0, np.float32)
    actual = allocation.sharpen_moves(nowhere, sharpness).numpy()
    np.testing.assert_allclose(actual, np.full_like(nowhere, 1 / SLOTS), atol=1e-6)


def test_a_faint_chain_is_cleared():
    sharp = allocation.sharpen_moves(FAINT, np.full([1, 1, 1], 12.0, np.float32)).numpy()
    assert sharp[0, 0, 0, 0] > 0.999 and sharp[0, 0, 0, 1] < 1e-3


@pytest.mark.parametrize("sharpness", [1.0, 30.0])
def test_gradients_of_sharp_links_are_finite(sharpness):
    weights, powers = tf.constant(FAINT), tf.fill([1, 1, 1], sharpness)
    with tf.GradientTape() as tape:
        tape.watch([weights, powers])
        result = allocation.sharpen_moves(weights, powers)
        total = tf.reduce_sum(result * np.arange(SLOTS, dtype=np.float32))
    slopes = tape.gradient(total, [weights, powers])
    assert all(np.all(np.isfinite(slope)) for slope in slopes)
    assert np.any(slopes[0] != 0)
