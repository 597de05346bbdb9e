"""RNNSearch with a continuous cache of its own translations (Tu et al. 2018).

The cache is a document's: `Encoded.document`, a `memory.cache.Cache`, is read by every step of a
sentence and written when the sentence is complete, by whoever decodes it. What is read is seen by
the readout alone: the recurrence is RNNSearch's, and an empty cache changes nothing at all.
Equation numbers are the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, NamedTuple

import tensorflow as tf

from tfmann.cells.additive import AdditiveCell, AdditiveMemory, AdditiveState
from tfmann.cells.base import Encoded, StepOutput, per_row, per_sentence
from tfmann.cells.dot_product import DotProduct
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import attention, cache

NAME = "cache"
SHARED_HPARAMS = ("two_gru",)

HPARAMS = {
    "cache_size": {
        "default": 25,
        "minimum": 0,
        "help": "cache: slots I, each for a target word of the document so far.",
    },
    "cache_fusion": {
        "default": "deep",
        "choices": ["deep", "shallow"],
        "help": "cache: what is found is mixed into the state before the readout (deep), or the "
        "words of the slots into the distribution (shallow).",
    },
    "cache_matching": {
        "default": "dot",
        "choices": ["dot", "scaled_dot", "cosine", "uniform", "nothing"],
        "help": "cache: how a slot is matched: dot, as printed; scaled_dot and cosine, with a "
        "learned gain (as of attention_score); or, to see what a gain over no cache is worth, the "
        "mean of all slots (uniform), or m_t = 0 (nothing, with deep fusion only).",
    },
    "cache_overwrite": {
        "default": True,
        "help": "cache: a word that has a slot is averaged into it; false: always a new slot.",
    },
}


class CacheMemory(NamedTuple):
    """What every step reads, and what is asked when the steps are done."""

    search: AdditiveMemory
    cache: cache.Cache
    keys: tf.Tensor  # [B, I, D], such that a score is a plain product with c_t
    gate: tuple[tf.Tensor, ...]  # U [U, G], V [D, G], W [U, G]
    # what a search takes instead of V c_t and W m_t, means by a_t and by P(c_i | c_t)
    gate_annotations: tf.Tensor  # [B, S, G], V h_j
    gate_values: tf.Tensor  # [B, I, G], W s_i


class CacheCell(AdditiveCell):
    """RNNSearch's step, then `s~_t = (1 - lambda_t) s_t + lambda_t m_t` for the readout (6).

    The paper matches by the plain product `c_t . c_i` (5), which grows with the width D until one
    slot has all of the weight (docs/recipes.md); `cache_matching` has others, and two controls.
    """

    document_memory = "cache"
    written_from = ("alignments", "decoder_state")
    recalls = ("cache_match", "cache_gate")

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the gate; all else is RNNSearch's."""
        super().__init__(hparams, annotation_width, weights)
        units, deep = hparams.num_units, hparams.cache_fusion == "deep"
        kind = hparams.cache_matching
        self.matching = DotProduct(
            kind if kind in ("scaled_dot", "cosine") else "dot",
            annotation_width,
            weights.scope("matching"),
        )
        width = units if deep else 1
        # of lambda (8); G = U for deep fusion, 1 for shallow; no bias, as printed
        self.gate_state_kernel = weights.matrix("gate_state_kernel", [units, width])
        self.gate_context_kernel = weights.matrix(
            "gate_context_kernel", [annotation_width, width]
        )
        self.gate_retrieved_kernel = weights.matrix("gate_retrieved_kernel", [units, width])
        self.memory_numbers = hparams.cache_size * (annotation_width + units)
        # of shallow fusion: the gate's sum, P_cache [I] and the slots' words [I]
        self.beside_width = 0 if deep else 1 + 2 * hparams.cache_size

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> CacheMemory:
        """RNNSearch's, beside the cache; without a document it is an empty one."""
        h, batch = self.hparams, tf.shape(encoded.length)[0]
        held = encoded.document or cache.empty(
            batch, h.cache_size, self.annotation_width, h.num_units
        )
        kernels = (
            self.gate_state_kernel, self.gate_context_kernel, self.gate_retrieved_kernel
        )  # fmt: skip
        gate = tuple(tf.cast(kernel, dtype) for kernel in kernels)
        return CacheMemory(
            search=super().prepare(encoded, dtype),
            cache=held,
            keys=self.matching.prepare(held.keys),
            gate=gate,
            gate_annotations=product(encoded.annotations, gate[1]),
            gate_values=product(held.values, gate[2]),
        )

    def step(self, inputs: tf.Tensor, state: AdditiveState, memory: CacheMemory) -> StepOutput:
        """RNNSearch's: query, address, context, state."""
        query = self.query(inputs, state, memory.search)
        alignments, context = memory.search.source.answer(query)
        hidden = memory.search.state_gru.step(context, query)
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=AdditiveState(hidden),
            diagnostics={"alignments": per_row(alignments), "decoder_state": hidden},
        )

    def writes(self, outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Keys and values of outputs `[..., O]`: c_t `[..., D]` and s_t `[..., U]`."""
        states, contexts = tf.split(outputs, [self.hparams.num_units, self.annotation_width], -1)
        return contexts, states

    def writes_seen(
        self, seen: Mapping[str, tf.Tensor], encoded: Encoded
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """As `writes`, of alignments `[B, T, S]` and s_t `[B, T, U]`."""
        return attention.read(seen["alignments"], encoded.annotations), seen["decoder_state"]

    def recall(
        self, outputs: tf.Tensor, memory: CacheMemory, seen: Mapping[str, tf.Tensor] | None
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Outputs `[B, n, O]` with s~_t in the place of s_t; shallow: with what to mix beside."""
        contexts, states = self.writes(outputs)
        matched = self._match(contexts, memory)
        retrieved = cache.read(matched, memory.cache)
        sums = product(states, memory.gate[0])
        if seen is None:
            sums += product(contexts, memory.gate[1]) + product(retrieved, memory.gate[2])
        else:
            alignments = per_sentence(seen["alignments"], contexts)
            sums += attention.read(alignments, memory.gate_annotations)
            sums += attention.read(matched, memory.gate_values)
        scores = cache.gate_scores(sums, memory.cache)
        gates = tf.sigmoid(scores)  # (8)
        shown = {
            "cache_match": matched,
            "cache_gate": tf.reduce_mean(gates, axis=-1, keepdims=True),
        }
        if self.hparams.cache_fusion == "deep":
            return tf.concat([cache.combine(gates, states, retrieved), contexts], -1), shown  # (6)
        of_words = matched
        if not self.hparams.cache_overwrite:
            of_words = cache.word_probabilities(matched, memory.cache)
        # ids pass as floats: exact below 2**24
        words = tf.cast(memory.cache.words, tf.float32)[:, None]
        words = tf.broadcast_to(words, tf.shape(of_words))
        return tf.concat([outputs, scores, of_words, words], axis=-1), shown

    def _match(self, contexts: tf.Tensor, memory: CacheMemory) -> tf.Tensor:
        """P(c_i | c_t) `[B, n, I]` (5), or what stands in its place."""
        kind = self.hparams.cache_matching
        scores = self.matching.scores(contexts, memory.keys)
        if kind == "uniform":
            scores = tf.zeros_like(scores)
        matched = cache.match(scores, memory.cache)
        return tf.zeros_like(matched) if kind == "nothing" else matched

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """RNNSearch's, with what stands beside passed on: `[M, readout_width + beside_width]`."""
        own, beside = tf.split(outputs, [self.output_width, self.beside_width], axis=-1)
        return tf.concat([super().readout(own, embedded, noise, dtype), beside], axis=-1)

    def distribution(
        self, readout: tf.Tensor, project: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        """Shallow fusion (4.4): `(1 - lambda) softmax + lambda P_cache`, as logits."""
        slots = self.hparams.cache_size
        if not self.beside_width:
            return project(readout)
        sizes = [self.readout_width, 1, slots, slots]
        own, scores, probabilities, words = tf.split(readout, sizes, axis=-1)
        return cache.mix(project(own), scores, probabilities, tf.cast(words, tf.int32))
