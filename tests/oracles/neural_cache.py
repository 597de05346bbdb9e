"""The neural cache on any model, word by word, for the sentences of one document.

Grave, Joulin and Usunier 2017 ("Improving Neural Language Models with a Continuous Cache",
section 3). The cache holds pairs (h_i, w_i): the hidden state that predicted a word, and the word.

    p_cache(w | h_1..t, w_1..t) ~ sum_{i=1}^{t-1} 1[w = w_{i+1}] exp(theta h_t . h_i)
    p(w | h_1..t, w_1..t) = (1 - lambda) p_vocab(w | h_t) + lambda p_cache(w | h_1..t, w_1..t)

Here h_t is the readout that the output layer projects, and the cache is read-only within a
sentence: the pairs of a sentence enter when it is complete, in order, the oldest leave. `<unk>`
and `</s>` do not enter. With nothing in the cache p is p_vocab.
"""

from __future__ import annotations

import numpy as np

UNKNOWN, END = 0, 2  # the ids that do not enter


def p_cache(state, cache, theta: float, vocabulary_size: int) -> np.ndarray:
    """The distribution [V] of a cache, a list of pairs (h_i [R], w_i) that is not empty."""
    exponents = np.array([theta * np.dot(state, key) for key, _ in cache])
    masses = np.exp(exponents - exponents.max())
    word_masses = np.zeros(vocabulary_size)
    for mass, (_, word) in zip(masses, cache):
        word_masses[word] += mass
    return word_masses / word_masses.sum()


def mixture(p_model, state, cache, theta: float, weight: float) -> np.ndarray:
    """p [V] from p_model [V]; `weight` is lambda."""
    p_model = np.asarray(p_model, np.float64)
    if not cache:
        return p_model
    return (1 - weight) * p_model + weight * p_cache(state, cache, theta, len(p_model))


def after(cache, states, words, size: int) -> list:
    """The cache after a sentence with the readouts [T, R] and the words [T]."""
    pairs = [(h, w) for h, w in zip(states, words) if w not in (UNKNOWN, END)]
    return [*cache, *pairs][-size:]
