"""A summary of the previous source sentences in addition to the context (Wang et al. 2017a).

"Exploiting Cross-Sentence Context for Neural Machine Translation", on RNNSearch: one of the two
systems that Tu et al. 2018 compare the continuous cache with.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.beams import merge_beams, split_beams
from tfmann.layers.conditional_gru import ConditionalGRU, KeyedAnnotations, MeanStart, Readout
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product


class SummaryState(NamedTuple):
    """State between steps."""

    hidden: tf.Tensor  # [B, U] s_{t-1}


class SummarySource(NamedTuple):
    """Constants of a step."""

    sentence: KeyedAnnotations
    summary: tf.Tensor  # [B, 1, U] d
    gate_from_summary: tf.Tensor  # [B, 1, U] D_z d


class SummaryCell(DecoderCell):
    """`z_t = sigmoid(U_z q_t + C_z c_t + D_z d)`, `s_t = GRU2(q_t, [c_t; z_t * d])`.

    d starts both directions of the encoder (`models.history_encoder`) and enters s_0. Without
    history it is zero, and the cell computes what RNNSearch does.

    Unlike the paper, which prints s_{t-1}, y_{t-1} and c_t, the gate reads q_t, c_t and d, as in
    the authors' released decoder of two GRUs; this choice reproduces, within 0.1M, the 18.8M
    parameters that it adds to RNNSearch in Tu et al. 2018, Table 5. It has no bias, and it gates d
    alone, as printed.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates RNNSearch's weights, the gate's, and the rows of kernels that multiply d."""
        super().__init__(hparams, annotation_width, weights)
        units = hparams.num_units
        self.start = MeanStart(hparams, annotation_width, weights)
        self.decoder = ConditionalGRU(hparams, annotation_width, weights)
        self.deep_output = Readout(hparams, annotation_width, weights)
        self.output_width = units + annotation_width
        self.readout_width = self.deep_output.width
        self.summary_initial_kernel = weights.matrix("summary_initial_kernel", [units, units])
        # the rows of GRU2's kernel below those of c_t
        self.summary_state_kernel = weights.matrix("summary_state_kernel", [units, 3 * units])
        self.gate_query_kernel = weights.matrix("gate_query_kernel", [units, units])  # U_z
        self.gate_context_kernel = weights.matrix("gate_context_kernel", [annotation_width, units])
        self.gate_summary_kernel = weights.matrix("gate_summary_kernel", [units, units])  # D_z

    def _summary(self, encoded: EncoderOutput) -> tf.Tensor:
        """Returns d `[B, U]`."""
        if encoded.document:
            return encoded.document.vector
        return tf.zeros([tf.shape(encoded.length)[0], self.hparams.num_units])

    def initial_state(self, encoded: EncoderOutput) -> SummaryState:
        """Returns `s_0 = tanh(W_init mean_j h_j + W_d d + b)`."""
        from_summary = tf.matmul(self._summary(encoded), self.summary_initial_kernel)
        return SummaryState(self.start(encoded.annotations, encoded.length, from_summary))

    def prepare(self, encoded: EncoderOutput) -> SummarySource:
        """Returns the keys, d and its part of the gate."""
        summary = self._summary(encoded)
        return SummarySource(
            sentence=self.decoder.prepare(encoded.annotations, encoded.mask),
            summary=summary[:, None],
            gate_from_summary=product(summary, self.gate_summary_kernel)[:, None],
        )

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects words `[..., E]` to their part of GRU1's pre-activations, `[..., 3U]`."""
        embedded = masks.dropout("input", self.hparams.dropout, embedded)
        return self.decoder.query_gru.project(embedded)

    def step(self, inputs: tf.Tensor, state: SummaryState, source: SummarySource) -> StepOutput:
        """Computes q_t, a_t, c_t, z_t and s_t."""
        query, context, alignments = self.decoder.attend(inputs, state.hidden, source.sentence)
        sums = product(query, self.gate_query_kernel) + product(context, self.gate_context_kernel)
        gate = tf.sigmoid(split_beams(sums, source.summary) + source.gate_from_summary)  # z_t
        gated = merge_beams(gate * source.summary)  # [B*K, U]
        from_summary = product(gated, self.summary_state_kernel)
        hidden = self.decoder.state_gru(context, query, from_summary)
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=SummaryState(hidden),
            diagnostics={
                "alignments": alignments,
                "summary_gate": merge_beams(tf.reduce_mean(gate, axis=-1, keepdims=True)),
            },
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns `tanh(W_s s_t + W_y y_{t-1} + W_c c_t)` with dropout: `[M, R]`."""
        readout = self.deep_output(outputs, embedded)
        return masks.dropout("readout", self.hparams.readout_dropout, readout)
