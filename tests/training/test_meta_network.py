"""The training of the network of adaptive kNN-MT, where the right answer is known."""

import numpy as np
import pytest
from oracles import adaptive_neighbors as oracle

from tfmann.memory.word_mixture import NO_WORD
from tfmann.training import meta_network
from tfmann.training.meta_network import Examples

K, T = 4, 2.0


def corpus(sentences, seed=1):
    """Positions of 8 words; the nearest word is right where d_1 < 1, and no other word ever is.

    The model gives every reference the probability 0.1.
    """
    stream = np.random.default_rng(seed)
    total = 8 * sentences
    distances = np.sort(stream.uniform(0.0, 4.0, [total, K])).astype(np.float32)
    words = np.tile(np.array([5, 6, 7, 8], np.int32), [total, 1])
    words[::3, 2:] = NO_WORD
    references = np.where(distances[:, 0] < 1.0, words[:, 0], 3).astype(np.int32)
    log_probs = np.full([total], np.log(0.1), np.float32)
    return (
        Examples(distances, words, references, log_probs),
        list(np.arange(total).reshape(sentences, 8)),
    )


def oracle_shares(network, distances, words):
    """m of one position, and its neighbours."""
    neighbors = [(d, w) for d, w in zip(distances, words) if w != NO_WORD]
    weights = network.w_1.T, network.b_1[0], network.w_2.T, network.b_2[0]
    return oracle.shares(oracle.features(neighbors, K, T), weights), neighbors


def oracle_loss(network, positions):
    """-log p of the references, position by position."""
    losses = []
    for distances, words, reference, log_prob in zip(*positions):
        m, neighbors = oracle_shares(network, distances, words)
        p = m[0] * np.exp(log_prob)
        for k, share in zip(oracle.neighbor_counts(K)[1:], m[1:]):
            p += share * oracle.p_nearest(neighbors[:k], T, 10)[reference]
        losses.append(-np.log(p))
    return np.mean(losses)


@pytest.fixture(scope="module")
def trained():
    positions, sentences = corpus(100)
    counted = []
    result = meta_network.train(positions, sentences, T, count=lambda: counted.append(1))
    return result, positions, sentences, len(counted)


def test_the_loss_is_that_of_the_oracle_for_the_sentences_that_are_held_back(trained):
    result, positions, sentences, _ = trained
    held_back = positions.take(sentences[9::10])
    assert result.loss == pytest.approx(oracle_loss(result.network, held_back), rel=1e-4)
    assert result.model_loss == pytest.approx(-np.log(0.1), rel=1e-5)


def test_the_network_learns_when_the_nearest_word_is_right(trained):
    result, positions, sentences, updates = trained
    words = [5, 6, 7, 8]
    near, _ = oracle_shares(result.network, [0.5, 1.8, 2.5, 3.0], words)
    far, _ = oracle_shares(result.network, [2.0, 2.3, 2.5, 3.0], words)
    assert near[1] > 0.8 and far[0] > 0.8
    held_back = positions.take(sentences[9::10])
    m = [oracle_shares(result.network, d, w)[0] for d, w in zip(*held_back[:2])]
    np.testing.assert_allclose(result.shares, np.mean(m, axis=0), atol=1e-5)
    is_far = held_back.distances[:, 0] >= 1.0
    assert result.loss < is_far.mean() * -np.log(0.1) + 0.2  # near words would cost nothing
    assert 1000 < result.updates <= updates <= meta_network.UPDATES


@pytest.mark.thorough
def test_where_the_memory_is_never_right_the_model_is_left_alone():
    positions, sentences = corpus(40)
    positions = positions._replace(references=np.full_like(positions.references, 3))
    result = meta_network.train(positions, sentences, T)
    assert result.shares[0] > 0.95
    assert result.loss == pytest.approx(result.model_loss, abs=0.05)


def test_a_seed_gives_the_same_network(monkeypatch):
    monkeypatch.setattr(meta_network, "UPDATES", 100)
    positions, sentences = corpus(40)
    first, again, other = (meta_network.train(positions, sentences, T, seed) for seed in (1, 1, 2))
    np.testing.assert_allclose(first.network.w_2, again.network.w_2, atol=1e-5)
    assert np.abs(first.network.w_2 - other.network.w_2).max() > 0.01


def test_sentences_that_are_held_back_change_no_weight(monkeypatch):
    monkeypatch.setattr(meta_network, "UPDATES", 10)
    positions, sentences = corpus(40)
    numbers = np.repeat(np.arange(40, dtype=np.int32), 8)
    seen = []
    monkeypatch.setattr(
        meta_network, "_update_function", lambda *_: lambda *parts: seen.append(parts[2])
    )
    meta_network.train(positions._replace(references=numbers), sentences, T)
    assert set(np.concatenate(seen)) == set(range(40)) - {9, 19, 29, 39}
    assert {len(batch) for batch in seen} == {32 * 8, 4 * 8}  # the 36 others, in two batches


def test_no_rate_is_left_where_nothing_is_learnt(monkeypatch):
    """Where no sentence of the rest says anything of those held back, training ends early."""
    monkeypatch.setattr(meta_network, "_EVALUATE", 10)
    positions, sentences = corpus(40)
    references = positions.references.copy()
    for rows in sentences[9::10]:
        references[rows] = 3
    for number, rows in enumerate(sentences):
        if (number + 1) % 10:
            references[rows] = 5
    counted = []
    result = meta_network.train(
        positions._replace(references=references), sentences, T, count=lambda: counted.append(1)
    )
    assert len(counted) < 500 and result.updates == 0
