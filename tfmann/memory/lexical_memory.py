"""A memory of word translations that proposes words: M-NMT.

Feng et al. 2017 ("Memory-augmented Neural Machine Translation", arXiv:1708.02005, section 3). The
memory of a sentence has the target words t_k that a lexicon gives for its source words. Its element
has the annotations h_j of the words that t_k may translate, and t_k's embedding:

    pi_kj = p(s_j|t_k) / sum_i p(s_i|t_k)
    u_k = [sum_j pi_kj h_j; E_y(t_k)]
    beta_tk = softmax_k(v . tanh(W_u u_k + W_q q_t))
    p_memory(w) = sum_k beta_tk 1[w = t_k]
    p(w) = (1 - lambda) p_model(w) + lambda p_memory(w)

W_u, W_q and v are learned when the model is (`training.lexical_attention`); `word_mixture` has the
last equation. Unlike the paper, the query q_t is the model's readout, of which every cell has one,
and not its state and the word before, on both of which a readout depends.

Letters: L slots that a batch needs, C slots at most, S source positions, D the width of
annotations, E that of embeddings, R that of readouts, A the depth of the attention, n queries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.memory import access
from tfmann.memory.word_mixture import NO_WORD, Proposals, all_places, fixed_gate

MOST_SLOTS = 128  # C


class LexicalEntries(NamedTuple):
    """The words in the memories of B sentences."""

    words: tf.Tensor  # [B, C] int32 t_k; empty slots, with NO_WORD, come last
    shares: tf.Tensor  # [B, L, S] pi_kj


class LexicalWeights(NamedTuple):
    """The weights of the attention, which are learned."""

    element_kernel: tf.Tensor  # [D + E, A] W_u
    query_kernel: tf.Tensor  # [R, A] W_q
    score_vector: tf.Tensor  # [A] v


class LexicalSource(NamedTuple):
    """Constants of a sentence's steps."""

    keys: tf.Tensor  # [B, L, A] W_u u_k
    words: tf.Tensor  # [B, C]
    gate: tf.Tensor  # [B, 1] log(lambda / (1 - lambda)); NEVER where the memory is empty
    query_kernel: tf.Tensor
    score_vector: tf.Tensor

    @property
    def proposals(self) -> int:
        """The number of slots C: each proposes its word."""
        return self.words.shape[1]

    def of_sentences(self, sentences: tf.Tensor) -> LexicalSource:
        """Returns the constants of the sentences `[n]`."""
        return self._replace(
            keys=tf.gather(self.keys, sentences),
            words=tf.gather(self.words, sentences),
            gate=tf.gather(self.gate, sentences),
        )

    def propose(self, readouts: tf.Tensor) -> Proposals:
        """Returns p_memory and lambda for readouts `[B, n, R]`."""
        weights = attend(self, readouts)  # [B, n, L]
        batch, queries, slots = tf.unstack(tf.shape(weights))
        most = self.proposals
        return Proposals(
            tf.broadcast_to(self.gate[:, None], [batch, queries, 1]),
            tf.ensure_shape(
                tf.pad(weights, [[0, 0], [0, 0], [0, most - slots]]), [None, None, most]
            ),
            tf.broadcast_to(self.words[:, None], [batch, queries, most]),
        )

    def places(self, readouts: tf.Tensor) -> tf.Tensor:
        """Returns the slots of the proposals, `[B, n, C]`: all."""
        return all_places(readouts, self.proposals)


def prepare(
    entries: LexicalEntries,
    weights: LexicalWeights,
    annotations: tf.Tensor,
    embedding: tf.Tensor,
    mixture_weight: float,
) -> LexicalSource:
    """Returns what the steps of sentences read.

    Args:
      entries: the memories' words.
      weights: of the attention.
      annotations: `[B, S, D]`.
      embedding: of target words, `[V, E]`.
      mixture_weight: lambda, from 0 to below 1.
    """
    words = entries.words[:, : tf.shape(entries.shares)[1]]
    embedded = tf.gather(embedding, tf.maximum(words, 0))
    elements = tf.concat([tf.matmul(entries.shares, annotations), embedded], axis=-1)
    return LexicalSource(
        keys=tf.tensordot(elements, weights.element_kernel, 1),
        words=entries.words,
        gate=fixed_gate(mixture_weight, entries.words),
        query_kernel=tf.convert_to_tensor(weights.query_kernel),
        score_vector=tf.convert_to_tensor(weights.score_vector),
    )


def attend(source: LexicalSource, queries: tf.Tensor) -> tf.Tensor:
    """Returns beta `[B, n, L]` of queries `[B, n, R]`; all 0 where a memory is empty."""
    projected = tf.tensordot(queries, source.query_kernel, 1)  # [B, n, A]
    hidden = tf.tanh(tf.expand_dims(projected, 2) + tf.expand_dims(source.keys, 1))
    scores = tf.tensordot(hidden, source.score_vector, 1)  # [B, n, L]
    return access.softmax_over_filled(scores, _filled(source)[:, None])


def losses(
    source: LexicalSource, queries: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes -log beta of the slots that have the words which follow the queries.

    The paper's second stage minimises it; it is not the likelihood of the mixture.

    Args:
      source: the memories.
      queries: `[B, n, R]`.
      labels: `[B, n]` the words.

    Returns:
      `[B, n]`, 0 where no slot has the word; and whether one has it.
    """
    weights = attend(source, queries)
    words = source.words[:, : tf.shape(weights)[2]]
    is_label = words[:, None] == labels[:, :, None]  # [B, n, L], at most one slot
    chosen = tf.reduce_sum(tf.where(is_label, weights, 0.0), axis=-1)
    has_slot = tf.reduce_any(is_label, axis=-1)
    return -tf.math.log(tf.where(has_slot, tf.maximum(chosen, 1e-30), 1.0)), has_slot


def entries_signature() -> LexicalEntries:
    """Returns the shapes and types of `LexicalEntries`."""
    return LexicalEntries(
        tf.TensorSpec([None, MOST_SLOTS], tf.int32), tf.TensorSpec([None, None, None])
    )


def pack(words: list[np.ndarray], shares: list[np.ndarray], positions: int) -> LexicalEntries:
    """Pads the entries of B sentences; returns NumPy arrays.

    Args:
      words: of each sentence `[k]`, at most `MOST_SLOTS`.
      shares: of each sentence `[k, its source words]`.
      positions: S.
    """
    most = max([1, *map(len, words)])
    packed = LexicalEntries(
        np.full([len(words), MOST_SLOTS], NO_WORD, np.int32),
        np.zeros([len(words), most, positions], np.float32),
    )
    for row, (of_row, shares_of_row) in enumerate(zip(words, shares)):
        packed.words[row, : len(of_row)] = of_row
        packed.shares[row, : len(of_row), : shares_of_row.shape[1]] = shares_of_row
    return packed


def _filled(source: LexicalSource) -> tf.Tensor:
    """Returns 1 in the slots that have a word, else 0: `[B, L]`."""
    return tf.cast(source.words[:, : tf.shape(source.keys)[1]] != NO_WORD, tf.float32)
