"""The continuous cache on RNNSearch, teacher-forced, for the sentences of one document.

Tu et al. 2018 ("Learning to Remember Translation History with a Continuous Cache"). A slot
holds a key c_i, a value s_i and the target word y_i that they came with. A step reads:

    P(c_i | c_t) = softmax_i(c_t . c_i), over the filled slots;               (5)
    m_t = sum_i P(c_i | c_t) s_i;
    lambda_t = sigmoid(U s_t + V c_t + W m_t), 0 while nothing is filled;     (8)
    deep fusion:    s~_t = (1 - lambda_t) s_t + lambda_t m_t;                 (6)
                    p(y_t) = g(y_{t-1}, c_t, s~_t);                           (7)
    shallow fusion: p(y_t) = (1 - lambda_t) g(y_{t-1}, c_t, s_t) + lambda_t P_cache,
                    lambda_t a number, P_cache(y) = sum of P over the slots of y.

s~_t is seen by the readout alone: the recurrence continues with s_t, so that RNNSearch's
states and contexts are those of `rnnsearch.decode`, whatever the cache holds.

A complete sentence is written (3.3), each (c_t, s_t, y_t) in order, `</s>` and `<unk>` too:
where y_t has a slot, key and value become the mean of what was there and what comes (the
n-th last of many writes counts 1/2^n); else the first empty slot is taken, else the least
recently used one. "Used" means written, and an update is a use; reading is none. Without
`overwrite` (Table 3) a write never looks for y_t's slot: the oldest write makes room.

Other matchings than the paper's, with a learned gain g: softmax_i(g c_t . c_i / sqrt(D)),
softmax_i(g cos(c_t, c_i)); and two controls: 1 / (filled slots) for every filled slot, and
m_t = 0 with nothing matched, where lambda_t is as it would be.

Weights, besides those of RNNSearch (see `rnnsearch`), G = U for deep fusion, 1 for shallow:
    gate_state_kernel: U [U, G];  gate_context_kernel: V [D, G];
    gate_retrieved_kernel: W [U, G]; no bias, as printed.
    projection_kernel: [O, V];  projection_bias: [V], of the softmax in g.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from . import rnnsearch
from .addressing import softmax
from .recurrent import sigmoid

EMPTY = -1  # the word of an empty slot
FUSIONS = ("deep", "shallow")
MATCHINGS = ("dot", "scaled_dot", "cosine", "projected", "uniform", "nothing")


class Cache(NamedTuple):
    """The I slots; a slot is empty while its count is 0."""

    keys: np.ndarray  # [I, D]
    values: np.ndarray  # [I, U]
    words: np.ndarray  # [I]
    counts: np.ndarray  # [I] how many writes the slot's key and value are made of
    ages: np.ndarray  # [I] how many writes went elsewhere since it was written


class Sentence(NamedTuple):
    """One sentence of a document, with its translation."""

    annotations: np.ndarray  # [S, D] h, real positions only
    target_embeddings: np.ndarray  # [T, E] y_{t-1}, beginning with that of `<s>`
    target_words: Sequence[int]  # [T] y_t, ending with `</s>`


# --- reading -----------------------------------------------------------------------------


def match(cache: Cache, context, matching: str = "dot", learned=1.0) -> np.ndarray:
    """P(c_i | c_t) [I], equation 5; empty slots have none, an empty cache is all zeros.

    What is `learned` is the gain g, or W_m [D, D] of `projected`.
    """
    filled = [slot for slot, count in enumerate(cache.counts) if count]
    probabilities = np.zeros(len(cache.counts))
    if filled and matching != "nothing":
        scores = [score(context, cache.keys[slot], matching, learned) for slot in filled]
        probabilities[filled] = softmax(scores)
    return probabilities


def score(context, key, matching: str, learned) -> float:
    """Scores a slot's key."""
    if matching == "uniform":
        return 0.0
    if matching == "projected":
        return float(np.dot(context, key @ learned))
    product = float(np.dot(context, key))
    if matching == "scaled_dot":
        return learned * product / len(key) ** 0.5
    if matching == "cosine":
        return learned * product / float(np.linalg.norm(context) * np.linalg.norm(key))
    return product


def retrieve(cache: Cache, probabilities) -> np.ndarray:
    """m_t [U], the values by their probabilities."""
    retrieved = np.zeros(cache.values.shape[1])
    for probability, value in zip(probabilities, cache.values):
        retrieved += probability * value
    return retrieved


def gate(weights: Mapping, cache: Cache, state, context, retrieved) -> np.ndarray:
    """lambda_t [G], equation 8; zeros where there is nothing to retrieve."""
    if not any(cache.counts):
        return np.zeros(weights["gate_state_kernel"].shape[1])
    return sigmoid(
        state @ weights["gate_state_kernel"]
        + context @ weights["gate_context_kernel"]
        + retrieved @ weights["gate_retrieved_kernel"]
    )


def combine(amount, plain, cached) -> np.ndarray:
    """(1 - lambda) own + lambda cached: states in equation 6, probabilities in 4.4."""
    return (1.0 - amount) * plain + amount * cached


def word_probabilities(cache: Cache, probabilities, vocabulary: int) -> np.ndarray:
    """P_cache [V]: each slot's probability goes to its word."""
    of_words = np.zeros(vocabulary)
    for probability, word, count in zip(probabilities, cache.words, cache.counts):
        if count:
            of_words[word] += probability
    return of_words


def gate_loss(own: float, cached: float, amount: float) -> float:
    """The loss of a gate that is told where to open: |P_cache(y) - P(y)| times a cross-entropy.

    The gate lambda_t should be 1 where P_cache(y) > P(y), else 0. Neither probability is learned
    from this loss.
    """
    return abs(cached - own) * -np.log(amount if cached > own else 1.0 - amount)


# --- writing -----------------------------------------------------------------------------


def empty(slots: int, annotation: int, units: int) -> Cache:
    """A cache of I = `slots` slots with nothing in it; 0 is legal."""
    return Cache(
        keys=np.zeros((slots, annotation)),
        values=np.zeros((slots, units)),
        words=np.full(slots, EMPTY),
        counts=np.zeros(slots, dtype=int),
        ages=np.zeros(slots, dtype=int),
    )


def slot_of(cache: Cache, word: int) -> int | None:
    """The slot that holds `word`, or None."""
    for slot, count in enumerate(cache.counts):
        if count and cache.words[slot] == word:
            return slot
    return None


def slot_to_take(cache: Cache) -> int:
    """The first empty slot, or else the one whose last write is longest ago."""
    for slot, count in enumerate(cache.counts):
        if not count:
            return slot
    return max(range(len(cache.ages)), key=lambda slot: cache.ages[slot])


def write(cache: Cache, context, state, word: int, overwrite: bool = True) -> Cache:
    """The cache after one triple (c_t, s_t, y_t), section 3.3; `cache` stays as it was."""
    if len(cache.counts) == 0:
        return cache
    after = Cache(*(part.copy() for part in cache))
    slot = slot_of(cache, word) if overwrite else None
    if slot is None:
        slot = slot_to_take(cache)
        after.keys[slot], after.values[slot] = context, state
        after.words[slot], after.counts[slot] = word, 1
    else:
        after.keys[slot] = (cache.keys[slot] + context) / 2.0
        after.values[slot] = (cache.values[slot] + state) / 2.0
        after.counts[slot] += 1
    after.ages[after.counts > 0] += 1
    after.ages[slot] = 0
    return after


def write_sentence(cache: Cache, contexts, states, words, overwrite: bool = True) -> Cache:
    """The cache after a whole sentence: contexts [T, D], states [T, U], words [T]."""
    for context, state, word in zip(contexts, states, words):
        cache = write(cache, context, state, word, overwrite)
    return cache


# --- a document --------------------------------------------------------------------------


def step(
    weights: Mapping, cache: Cache, state, context, y, fusion: str, matching: str = "dot"
) -> dict:
    """Returns the outputs of one step: before the cache is read (`plain_...`) and after."""

    def readout(decoder_state):
        return np.tanh(np.concatenate([decoder_state, y, context]) @ weights["readout_kernel"])

    def words(output):
        return softmax(output @ weights["projection_kernel"] + weights["projection_bias"])

    matched = match(cache, context, matching, weights.get("matching"))
    retrieved = retrieve(cache, matched)
    amount = gate(weights, cache, state, context, retrieved)
    plain = readout(state)
    output = readout(combine(amount, state, retrieved)) if fusion == "deep" else plain
    probabilities = words(output)
    if fusion == "shallow":
        from_cache = word_probabilities(cache, matched, len(probabilities))
        probabilities = combine(amount, probabilities, from_cache)
    return {
        "plain_outputs": plain,
        "outputs": output,
        "plain_probabilities": words(plain),
        "probabilities": probabilities,
        "match": matched,
        "retrieved": retrieved,
        "gates": amount,
    }


def decode_document(
    weights: Mapping,
    document: Sequence[Sentence],
    slots: int,
    fusion: str = "deep",
    overwrite: bool = True,
    matching: str = "dot",
) -> list[dict]:
    """Decodes the sentences of one document, in order, from an empty cache.

    Args:
        weights: see the module's docstring.
        document: the sentences, whose target words are given and written.
        slots: I.
        fusion: 'deep' or 'shallow'.
        overwrite: whether a word that has a slot is averaged into it.
        matching: one of `MATCHINGS`; `matching` of the weights is its g or W_m.

    Returns:
        Of each sentence `plain_outputs` and `outputs` [T, O], the readouts before dropout
        of s_t and of s~_t; `plain_probabilities` and `probabilities` [T, V]; `match` [T, I];
        `retrieved` m_t [T, U]; `gates` lambda_t [T, G]; `alignments` [T, S]; `states` s_t
        [T, U]; `contexts` c_t [T, D]; `cache`, the `Cache` after the sentence is written.
    """
    if fusion not in FUSIONS:
        raise ValueError(f"fusion {fusion!r}: expected one of {', '.join(FUSIONS)}")
    cache = empty(slots, *weights["initial_kernel"].shape)
    sentences = []
    for sentence in document:
        decoded = rnnsearch.decode(weights, sentence.annotations, sentence.target_embeddings)
        states = decoded["states"]
        contexts = [
            sum(weight * h for weight, h in zip(alignment, sentence.annotations))
            for alignment in decoded["alignments"]
        ]
        rows = [
            step(weights, cache, state, context, y, fusion, matching)
            for state, context, y in zip(states, contexts, sentence.target_embeddings)
        ]
        cache = write_sentence(cache, contexts, states, sentence.target_words, overwrite)
        sentences.append(
            {
                **{name: np.array([row[name] for row in rows]) for name in rows[0]},
                "alignments": decoded["alignments"],
                "states": states,
                "contexts": np.array(contexts),
                "cache": cache,
            }
        )
    return sentences


def count_parameters(units: int, annotation: int, fusion: str = "deep") -> int:
    """Of U, V and W: all that the cache adds.

    With U = 1000 and D = 2000 deep fusion has the 4.0M of section 4.3 (88.2M less 84.2M,
    Table 5), and that is how we know that c_t is 2000 wide. A shallow gate has 4,000.
    """
    width = units if fusion == "deep" else 1
    return (units + annotation + units) * width
