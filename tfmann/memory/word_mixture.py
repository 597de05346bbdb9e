"""The mixture of a model's distribution with that of a word proposer.

    p(w) = (1 - lambda) p_model(w) + lambda p_proposed(w)

A word proposer proposes words at every step, each with a share of p_proposed; a word that is
proposed several times has the sum of its shares. It is a NamedTuple of tensors, which the steps
read, all hypotheses of a sentence share and nothing writes: `neural_cache.NeuralSource`,
`nearest_neighbors.NearestSource`, `adaptive_neighbors.AdaptiveSource`,
`lexical_memory.LexicalSource`.

Letters: R the width of readouts, n queries per sentence (its steps, or its hypotheses at one step),
C proposals per query.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Protocol

import tensorflow as tf

NEVER = -1e30  # log(lambda / (1 - lambda)): lambda and its gradient are exactly 0 in float32
NO_WORD = -1  # the word of an empty slot


class Proposals(NamedTuple):
    """The words that are proposed at each of n queries."""

    gates: tf.Tensor  # [B, n, 1] log(lambda / (1 - lambda)); NEVER where lambda is 0
    shares: tf.Tensor  # [B, n, C], which sum to 1 or are all 0
    words: tf.Tensor  # [B, n, C] int32, NO_WORD where there is none


class WordProposer(Protocol):
    """A word proposer, as the search knows it."""

    @property
    def proposals(self) -> int:
        """C, the number of proposals of a query."""

    def propose(self, readouts: tf.Tensor) -> Proposals:
        """Returns the proposals for readouts `[B, n, R]`."""

    def places(self, readouts: tf.Tensor) -> tf.Tensor:
        """Returns the index of each proposal's entry, int32 `[B, n, C]`, for traces."""

    def of_sentences(self, sentences: tf.Tensor) -> WordProposer:
        """Returns what the steps of the sentences `[n]` read."""


class DocumentAndProposer(NamedTuple):
    """The `document` of `Seq2Seq.prepare` for a model with a word proposer."""

    document: Any  # the `document` of a model without a word proposer
    proposer: Any  # a `WordProposer`


def read(readouts: tf.Tensor, proposer: WordProposer) -> tf.Tensor:
    """Appends to readouts `[B, n, R]` what `projection` needs: `[B, n, R + extra_width]`."""
    proposals = proposer.propose(readouts)
    # ids pass as floats: exact below 2**24
    words = tf.cast(proposals.words, tf.float32)
    return tf.concat([readouts, proposals.gates, proposals.shares, words], axis=-1)


def fixed_gate(weight: float, words: tf.Tensor) -> tf.Tensor:
    """Returns log(lambda / (1 - lambda)) of a fixed lambda, `[B, 1]`; NEVER without a word.

    Args:
      weight: lambda, from 0 to below 1.
      words: `[B, I]` of the slots, NO_WORD in an empty one.
    """
    has_words = tf.reduce_any(words != NO_WORD, axis=1, keepdims=True)
    return tf.where(has_words, math.log(weight / (1.0 - weight)) if weight else NEVER, NEVER)


def all_places(readouts: tf.Tensor, entries: int) -> tf.Tensor:
    """Returns `WordProposer.places` where every entry proposes its word at each of n queries."""
    batch, queries = tf.shape(readouts)[0], tf.shape(readouts)[1]
    return tf.broadcast_to(tf.range(entries), [batch, queries, entries])


def extra_width(proposer: WordProposer | tuple[()]) -> int:
    """Returns how much wider `read` makes readouts; 0 without a proposer."""
    return 1 + 2 * proposer.proposals if proposer else 0


def projection(
    project: Callable[[tf.Tensor], tf.Tensor], proposer: WordProposer | tuple[()]
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns the map from what `read` returns, `[M, R + extra_width]`, to logits `[M, V]`.

    Args:
      project: readouts `[M, R]` to logits `[M, V]`; without a proposer, it is the result.
      proposer: what the steps read, or ().
    """
    if not proposer:
        return project
    count = proposer.proposals

    def project_mixture(readouts: tf.Tensor) -> tf.Tensor:
        plain, gates, shares, words = tf.split(readouts, [-1, 1, count, count], axis=-1)
        return mix(project(plain), gates, shares, tf.cast(words, tf.int32))

    return project_mixture


def mix(logits: tf.Tensor, gates: tf.Tensor, shares: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
    """Returns logits of `(1 - lambda) softmax(logits) + lambda p_proposed`.

    In logarithms, so that no improbable word is rounded away. Their normaliser is that of `logits`,
    and where lambda is 0 they are `logits`, to the last bit.

    Args:
      logits: `[M, V]`.
      gates: `[M, 1]`, log(lambda / (1 - lambda)).
      shares: `[M, C]`, which sum to 1 or are all 0.
      words: int32 `[M, C]`, any number where the share is 0.
    """
    words = tf.maximum(words, 0)
    rows = tf.broadcast_to(tf.range(tf.shape(words)[0])[:, None], tf.shape(words))
    indices = tf.stack([rows, words], axis=-1)  # [M, C, 2]
    # the probability of each proposal's word, which may be proposed several times
    proposed = tf.gather(tf.scatter_nd(indices, shares, tf.shape(logits)), words, batch_dims=1)
    is_proposed = proposed > 0
    rest = logits - tf.nn.softplus(gates)  # + log(1 - lambda)
    from_proposer = tf.math.log(tf.where(is_proposed, proposed, 1.0)) - tf.nn.softplus(-gates)
    from_proposer += tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
    from_model = tf.gather(rest, words, batch_dims=1)
    gain = tf.where(is_proposed, tf.nn.softplus(from_proposer - from_model), 0.0)  # of logaddexp
    return tf.tensor_scatter_nd_update(rest, indices, from_model + gain)
