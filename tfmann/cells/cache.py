"""RNNSearch with a continuous cache of its own translations (Tu et al. 2018).

The cache belongs to a document. Every step of a sentence reads it, and the decoder writes to it
when the sentence is complete. Only the readout depends on what is read: the recurrence is
RNNSearch's, and an empty cache changes nothing. Equation numbers are the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.cells.document_memory import DocumentMemory
from tfmann.config import HParams
from tfmann.layers.beams import split_beams
from tfmann.layers.conditional_gru import ConditionalGRU, KeyedAnnotations, MeanStart, Readout
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.luong_attention import DotProductScore
from tfmann.layers.rnn import product
from tfmann.memory import continuous_cache
from tfmann.memory.continuous_cache import Cache


class CacheState(NamedTuple):
    """State between steps."""

    hidden: tf.Tensor  # [B, U] s_{t-1}


class CacheSource(NamedTuple):
    """Constants of a step."""

    sentence: KeyedAnnotations
    cache: Cache
    keys: tf.Tensor  # [B, D, I], such that a score is a plain product with c_t
    # A search computes V c_t and W m_t as the means, by a_t and by P(c_i | c_t), of:
    gate_annotations: tf.Tensor  # [B, S, G], V h_j
    gate_values: tf.Tensor  # [B, I, G], W s_i


class ContinuousCache(DocumentMemory):
    """`s~_t = (1 - lambda_t) s_t + lambda_t m_t` (6), m_t the mean of values by P(c_i | c_t) (5).

    Deep fusion puts s~_t in the place of s_t for the readout; shallow fusion (4.4) mixes the words
    of the slots into the distribution. The paper matches by the plain product `c_t . c_i`, which
    grows with D until one slot has all of the weight (docs/recipes.md); `cache_matching` has
    others, two of which it says gained nothing (footnote 2), and two controls.
    """

    read_diagnostics = ("cache_match", "cache_gate")
    entry_diagnostics = ("alignments", "decoder_state")

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates the gate U `[U, G]`, V `[D, G]`, W `[U, G]`; G = U if deep, 1 if shallow.

        A matching that is learned has a gain, or W_m `[D, D]` in `c_t . c_i W_m`, which begins as
        the identity.
        """
        super().__init__(name="continuous_cache")
        self._hparams, self._width = hparams, annotation_width
        units, deep = hparams.num_units, hparams.cache_fusion == "deep"
        kind = hparams.cache_matching
        self.matching = DotProductScore(
            kind if kind in ("scaled_dot", "cosine") else "dot",
            annotation_width,
            weights.scope("matching"),
        )
        self.key_kernel = None
        if kind == "projected":
            self.key_kernel = weights.scope("matching").constant(
                "key_kernel", np.eye(annotation_width)
            )
        gates = units if deep else 1
        self.gate_state_kernel = weights.matrix("gate_state_kernel", [units, gates])
        self.gate_context_kernel = weights.matrix("gate_context_kernel", [annotation_width, gates])
        self.gate_retrieved_kernel = weights.matrix("gate_retrieved_kernel", [units, gates])
        # of shallow fusion: the gate's sum, P_cache [I] and the slots' words [I]
        self.extra_width = 0 if deep else 1 + 2 * hparams.cache_size

    def empty(self, documents: tf.Tensor | int) -> Cache:
        """Returns caches without entries."""
        h = self._hparams
        return continuous_cache.empty(documents, h.cache_size, self._width, h.num_units)

    def prepare(self, sentence: KeyedAnnotations, cache: Cache) -> CacheSource:
        """Computes what does not change while a sentence is translated."""
        keys = cache.keys
        if self.key_kernel is not None:
            keys = product(keys, self.key_kernel)
        return CacheSource(
            sentence=sentence,
            cache=cache,
            keys=self.matching.prepare(keys),
            gate_annotations=product(sentence.annotations, self.gate_context_kernel),
            gate_values=product(cache.values, self.gate_retrieved_kernel),
        )

    def read(
        self,
        outputs: tf.Tensor,
        source: CacheSource,
        diagnostics: Mapping[str, tf.Tensor] | None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Returns `[s~_t; c_t]`; in shallow fusion `[s_t; c_t]` and what `distribution` needs."""
        contexts, states = self.entries(outputs)  # c_t [B, n, D], s_t [B, n, U]
        matched = self._match(contexts, source)  # (5)
        retrieved = continuous_cache.read(matched, source.cache)  # m_t
        sums = product(states, self.gate_state_kernel)  # U s_t
        if diagnostics is None:
            sums += product(contexts, self.gate_context_kernel)  # V c_t
            sums += product(retrieved, self.gate_retrieved_kernel)  # W m_t
        else:  # V and W were multiplied once per sentence, not at every step
            alignments = split_beams(diagnostics["alignments"], contexts)
            sums += alignments @ source.gate_annotations  # V c_t
            sums += matched @ source.gate_values  # W m_t
        scores = continuous_cache.gate_scores(sums, source.cache)
        gates = tf.sigmoid(scores)  # lambda_t (8)
        read = {
            "cache_match": matched,
            "cache_gate": tf.reduce_mean(gates, axis=-1, keepdims=True),
        }
        if self._hparams.cache_fusion == "deep":
            mixed = continuous_cache.combine(gates, states, retrieved)  # (6)
            return tf.concat([mixed, contexts], axis=-1), read
        word_weights = matched
        if not self._hparams.cache_overwrite:
            word_weights = continuous_cache.word_probabilities(matched, source.cache)
        # ids pass as floats: exact below 2**24
        words = tf.cast(source.cache.words, tf.float32)[:, None]
        words = tf.broadcast_to(words, tf.shape(word_weights))
        return tf.concat([outputs, scores, word_weights, words], axis=-1), read

    def _match(self, contexts: tf.Tensor, source: CacheSource) -> tf.Tensor:
        """Returns P(c_i | c_t) `[B, n, I]` (5), or the weights of a control."""
        kind = self._hparams.cache_matching
        scores = self.matching.scores(contexts, source.keys)
        if kind == "uniform":
            scores = tf.zeros_like(scores)
        matched = continuous_cache.match(scores, source.cache)
        return tf.zeros_like(matched) if kind == "nothing" else matched

    def entries(self, outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns keys c_t `[..., D]` and values s_t `[..., U]` of outputs `[..., O]`."""
        states, contexts = tf.split(outputs, [self._hparams.num_units, self._width], axis=-1)
        return contexts, states

    def entries_of_search(
        self, diagnostics: Mapping[str, tf.Tensor], annotations: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns keys and values of alignments `[B, T, S]` and s_t `[B, T, U]`."""
        contexts = diagnostics["alignments"] @ annotations
        return contexts, diagnostics["decoder_state"]

    def write(
        self,
        contents: Cache,
        entries: tuple[tf.Tensor, tf.Tensor],
        words: tf.Tensor,
        length: tf.Tensor,
    ) -> Cache:
        """Writes the triples (c_t, s_t, y_t) of a sentence in order (3.3)."""
        overwrite = self._hparams.cache_overwrite
        return continuous_cache.write(contents, *entries, words, length, overwrite)

    def distribution(
        self, readout: tf.Tensor, project: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        """Returns `(1 - lambda) softmax + lambda P_cache` (4.4) as logits, of shallow fusion."""
        if not self.extra_width:
            return project(readout)
        readout, scores, probabilities, words = self._split(readout)
        return continuous_cache.mix(project(readout), scores, probabilities, words)

    def loss(
        self, readout: tf.Tensor, labels: tf.Tensor, project: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor | float:
        """Returns the weighted loss of the gate, for the labels `[M]`."""
        weight = self._hparams.cache_gate_loss_weight
        if not weight:
            return 0.0
        readout, scores, probabilities, words = self._split(readout)
        own = tf.exp(
            -tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits=project(readout))
        )
        cached = tf.reduce_sum(tf.where(words == labels[:, None], probabilities, 0.0), axis=-1)
        return weight * continuous_cache.gate_loss(scores[:, 0], own, cached)

    def _split(self, readout: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Splits readouts of shallow fusion: gate score `[M, 1]`, P_cache and words `[M, I]`."""
        slots = self._hparams.cache_size
        readout, scores, probabilities, words = tf.split(readout, [-1, 1, slots, slots], axis=-1)
        return readout, scores, probabilities, tf.cast(words, tf.int32)


class CacheCell(DecoderCell):
    """RNNSearch, and a `ContinuousCache` between its step and its readout.

    Unlike the paper, where g (2, 7) is a linear map and a softmax: the readout has a tanh.
    """

    document_memory: ContinuousCache

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates RNNSearch's weights and the cache's gate."""
        super().__init__(hparams, annotation_width, weights)
        self.start = MeanStart(hparams, annotation_width, weights)
        self.decoder = ConditionalGRU(hparams, annotation_width, weights)
        self.deep_output = Readout(hparams, annotation_width, weights)
        self.document_memory = ContinuousCache(hparams, annotation_width, weights)
        self.output_width = hparams.num_units + annotation_width
        self.readout_width = self.deep_output.width
        self.memory_numbers = hparams.cache_size * self.output_width

    def initial_state(self, encoded: EncoderOutput) -> CacheState:
        """Returns `s_0 = tanh(W_init mean_j h_j + b)`."""
        return CacheState(self.start(encoded.annotations, encoded.length))

    def prepare(self, encoded: EncoderOutput) -> CacheSource:
        """Projects the annotations, and the cache; without a document it is empty."""
        cache = encoded.document or self.document_memory.empty(tf.shape(encoded.length)[0])
        sentence = self.decoder.prepare(encoded.annotations, encoded.mask)
        return self.document_memory.prepare(sentence, cache)

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects words `[..., E]` to their part of GRU1's pre-activations, `[..., 3U]`."""
        embedded = masks.dropout("input", self.hparams.dropout, embedded)
        return self.decoder.query_gru.project(embedded)

    def step(self, inputs: tf.Tensor, state: CacheState, source: CacheSource) -> StepOutput:
        """Computes q_t, a_t, c_t and s_t, which the cache does not change."""
        query, context, alignments = self.decoder.attend(inputs, state.hidden, source.sentence)
        hidden = self.decoder.state_gru(context, query)
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=CacheState(hidden),
            diagnostics={"alignments": alignments, "decoder_state": hidden},
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns `tanh(W_s s~_t + W_y y_{t-1} + W_c c_t)` with dropout, and what is extra."""
        extra_width = self.document_memory.extra_width
        outputs, extra = tf.split(outputs, [self.output_width, extra_width], axis=-1)
        readout = self.deep_output(outputs, embedded)
        readout = masks.dropout("readout", self.hparams.readout_dropout, readout)
        return tf.concat([readout, extra], axis=-1)
