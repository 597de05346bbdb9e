"""A second attention, to the previous source sentence (Jean et al. 2017).

"Does Neural Machine Translation Benefit from Larger Context?", on RNNSearch, as one of the two
systems that Tu et al. 2018 compare the continuous cache with.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.additive import AdditiveCell, AdditiveMemory, AdditiveState, Asked
from tfmann.cells.base import Encoded, StepOutput, per_row
from tfmann.cells.history import Previous
from tfmann.cells.recurrent import product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams

NAME = "previous"
SHARED_HPARAMS = ("two_gru",)


class PreviousMemory(NamedTuple):
    """What every step reads."""

    search: AdditiveMemory
    previous: Asked
    state_kernel: tf.Tensor  # [D, 3U] the rows of GRU2's kernel below those of c_t


class PreviousCell(AdditiveCell):
    """`s_t = GRU2(q_t, [c_t; p_t])`, readout `tanh(W_s s_t + W_y y_{t-1} + W_c c_t + W_r p_t)`.

    p_t is what q_t gets from the annotations of the sentence before (`models.history`); without one
    it is zero, and the cell does what RNNSearch does.

    Unlike the paper's, the second attention asks with q_t alone, not with c_t too: so decide the
    104.2M of Tu et al. 2018, Table 5.
    """

    document_memory = "history"
    history_size = 1
    history_form = "annotations"

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates what RNNSearch has not."""
        super().__init__(hparams, annotation_width, weights)
        units, width = hparams.num_units, annotation_width
        self.output_width = units + 2 * width
        self.previous_query_kernel = weights.matrix("previous_query_kernel", [units, self.depth])
        self.previous_memory_kernel = weights.matrix("previous_memory_kernel", [width, self.depth])
        self.previous_score_vector = weights.matrix("previous_score_vector", [self.depth])
        self.previous_state_kernel = weights.matrix("previous_state_kernel", [width, 3 * units])
        self.previous_readout_kernel = weights.matrix(
            "previous_readout_kernel", [width, self.readout_width]
        )

    def _previous(self, encoded: Encoded) -> Previous:
        rows = tf.shape(encoded.length)[0]
        none = Previous(tf.zeros([rows, 1, self.annotation_width]), tf.zeros([rows, 1]))
        return encoded.document or none

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> PreviousMemory:
        """Keys, of both sentences."""
        before = self._previous(encoded)
        previous = Asked(
            annotations=before.annotations,
            keys=product(before.annotations, tf.cast(self.previous_memory_kernel, dtype)),
            mask=before.mask[:, None],
            query_kernel=tf.cast(self.previous_query_kernel, dtype),
            score_vector=self.previous_score_vector,
        )
        state_kernel = tf.cast(self.previous_state_kernel, dtype)
        return PreviousMemory(super().prepare(encoded, dtype), previous, state_kernel)

    def step(
        self, inputs: tf.Tensor, state: AdditiveState, memory: PreviousMemory
    ) -> StepOutput:
        """Query, both addresses, both contexts, state."""
        search = memory.search
        query = self.query(inputs, state, search)
        alignments, context = search.source.answer(query)
        previous, beside = memory.previous.answer(query)
        # where there is no sentence, the softmax is over nothing but padding
        previous *= memory.previous.mask
        hidden = search.state_gru.step(context, query, product(beside, memory.state_kernel))
        return StepOutput(
            output=tf.concat([hidden, context, beside], axis=-1),
            state=AdditiveState(hidden),
            diagnostics={
                "alignments": per_row(alignments),
                "previous_alignments": per_row(previous),
            },
        )

    def readout_sums(
        self, outputs: tf.Tensor, embedded: tf.Tensor, dtype: tf.DType
    ) -> tf.Tensor:
        """RNNSearch's, and `W_r p_t`: `[M, readout_width]`."""
        width = self.annotation_width
        outputs, beside = tf.split(outputs, [self.hparams.num_units + width, width], -1)
        kernel = tf.cast(self.previous_readout_kernel, dtype)
        return super().readout_sums(outputs, embedded, dtype) + product(beside, kernel)
