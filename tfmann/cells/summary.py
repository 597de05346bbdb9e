"""A summary of the previous source sentences beside the context (Wang et al. 2017a).

"Exploiting Cross-Sentence Context for Neural Machine Translation", on RNNSearch, as one of the two
systems that Tu et al. 2018 compare the continuous cache with.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.additive import AdditiveCell, AdditiveMemory, AdditiveState
from tfmann.cells.base import Encoded, StepOutput, per_row, per_sentence
from tfmann.cells.history import Summary
from tfmann.cells.recurrent import product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams

NAME = "summary"
SHARED_HPARAMS = ("two_gru",)


class SummaryMemory(NamedTuple):
    """What every step reads."""

    search: AdditiveMemory
    summary: tf.Tensor  # [B, 1, U] d
    gate_from_summary: tf.Tensor  # [B, 1, U] D_z d
    gate_query_kernel: tf.Tensor  # [U, U] U_z
    gate_context_kernel: tf.Tensor  # [D, U] C_z
    state_kernel: tf.Tensor  # [U, 3U] the rows of GRU2's kernel below those of c_t


class SummaryCell(AdditiveCell):
    """`z_t = sigmoid(U_z q_t + C_z c_t + D_z d)`, `s_t = GRU2(q_t, [c_t; z_t * d])`.

    d begins both directions of the encoder (`models.history`) and enters s_0; without history it is
    zero, and the cell does what RNNSearch does.

    Unlike the paper, which prints s_{t-1}, y_{t-1} and c_t, the gate reads q_t, c_t and d, as in
    the authors' released decoder of two GRUs: so decide the 103.0M of Tu et al. 2018, Table 5. It
    has no bias, and it gates d alone, as printed.
    """

    document_memory = "history"
    history_size = 3
    history_form = "summary"

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates what RNNSearch has not."""
        super().__init__(hparams, annotation_width, weights)
        units = hparams.num_units
        self.summary_initial_kernel = weights.matrix("summary_initial_kernel", [units, units])
        self.summary_state_kernel = weights.matrix("summary_state_kernel", [units, 3 * units])
        self.gate_query_kernel = weights.matrix("gate_query_kernel", [units, units])
        self.gate_context_kernel = weights.matrix(
            "gate_context_kernel", [annotation_width, units]
        )
        self.gate_summary_kernel = weights.matrix("gate_summary_kernel", [units, units])

    def _summary(self, encoded: Encoded) -> tf.Tensor:
        """The vector d `[B, U]`."""
        rows = tf.shape(encoded.length)[0]
        document = encoded.document or Summary(tf.zeros([rows, self.hparams.num_units]))
        return document.vector

    def initial_state(self, encoded: Encoded) -> AdditiveState:
        """`s_0 = tanh(W_init mean_j h_j + W_d d + b)`."""
        from_summary = tf.matmul(self._summary(encoded), self.summary_initial_kernel)
        return AdditiveState(tf.tanh(self.initial_sums(encoded) + from_summary))

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> SummaryMemory:
        """Keys, and the gate's part that stays as it is."""
        summary = self._summary(encoded)
        from_summary = product(summary, tf.cast(self.gate_summary_kernel, dtype))
        return SummaryMemory(
            search=super().prepare(encoded, dtype),
            summary=summary[:, None],
            gate_from_summary=from_summary[:, None],
            gate_query_kernel=tf.cast(self.gate_query_kernel, dtype),
            gate_context_kernel=tf.cast(self.gate_context_kernel, dtype),
            state_kernel=tf.cast(self.summary_state_kernel, dtype),
        )

    def step(
        self, inputs: tf.Tensor, state: AdditiveState, memory: SummaryMemory
    ) -> StepOutput:
        """Query, address, context, gate, state."""
        search = memory.search
        query = self.query(inputs, state, search)
        alignments, context = search.source.answer(query)
        sums = product(query, memory.gate_query_kernel)
        sums += product(context, memory.gate_context_kernel)
        gate = tf.sigmoid(per_sentence(sums, memory.summary) + memory.gate_from_summary)
        gated = per_row(gate * memory.summary)
        hidden = search.state_gru.step(context, query, product(gated, memory.state_kernel))
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=AdditiveState(hidden),
            diagnostics={
                "alignments": per_row(alignments),
                "summary_gate": per_row(tf.reduce_mean(gate, axis=-1, keepdims=True)),
            },
        )
