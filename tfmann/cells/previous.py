"""A second attention, to the previous source sentence (Jean et al. 2017).

"Does Neural Machine Translation Benefit from Larger Context?", on RNNSearch: one of the two systems
that Tu et al. 2018 compare the continuous cache with.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.cells.history import Previous
from tfmann.config import HParams
from tfmann.layers.attention import AdditiveAttention
from tfmann.layers.beams import merge_beams
from tfmann.layers.conditional_gru import ConditionalGRU, KeyedAnnotations, MeanStart, Readout
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product


class PreviousState(NamedTuple):
    """State between steps."""

    hidden: tf.Tensor  # [B, U] s_{t-1}


class PreviousSource(NamedTuple):
    """Constants of a step."""

    sentence: KeyedAnnotations
    previous: KeyedAnnotations


class PreviousCell(DecoderCell):
    """`s_t = GRU2(q_t, [c_t; p_t])`, readout `tanh(W_s s_t + W_y y_{t-1} + W_c c_t + W_r p_t)`.

    p_t is the context of q_t in the annotations of the sentence before (`models.history_encoder`).
    Without one it is zero, and the cell computes what RNNSearch does.

    Unlike the paper's, the query of the second attention is q_t alone, without c_t; this choice
    reproduces the 20.0M parameters that it adds to RNNSearch in Tu et al. 2018, Table 5.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates RNNSearch's weights, the second attention, and the rows that multiply p_t."""
        super().__init__(hparams, annotation_width, weights)
        units, width = hparams.num_units, annotation_width
        self.start = MeanStart(hparams, width, weights)
        self.decoder = ConditionalGRU(hparams, width, weights)
        self.deep_output = Readout(hparams, width, weights)
        self.output_width = units + 2 * width
        self.readout_width = self.deep_output.width
        self.previous_attention = AdditiveAttention(
            units, width, hparams.attention_width, weights, "previous_"
        )
        # the rows of GRU2's kernel below those of c_t
        self.previous_state_kernel = weights.matrix("previous_state_kernel", [width, 3 * units])
        self.previous_readout_kernel = weights.matrix(
            "previous_readout_kernel", [width, self.readout_width]
        )  # W_r

    def initial_state(self, encoded: EncoderOutput) -> PreviousState:
        """Returns `s_0 = tanh(W_init mean_j h_j + b)`."""
        return PreviousState(self.start(encoded.annotations, encoded.length))

    def prepare(self, encoded: EncoderOutput) -> PreviousSource:
        """Projects the annotations of both sentences to keys."""
        rows = tf.shape(encoded.length)[0]
        nothing = Previous(tf.zeros([rows, 1, self.annotation_width]), tf.zeros([rows, 1]))
        annotations, mask = encoded.document or nothing
        keys = self.previous_attention.keys(annotations)
        return PreviousSource(
            sentence=self.decoder.prepare(encoded.annotations, encoded.mask),
            previous=KeyedAnnotations(annotations, keys, mask[:, None]),
        )

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects words `[..., E]` to their part of GRU1's pre-activations, `[..., 3U]`."""
        embedded = masks.dropout("input", self.hparams.dropout, embedded)
        return self.decoder.query_gru.project(embedded)

    def step(self, inputs: tf.Tensor, state: PreviousState, source: PreviousSource) -> StepOutput:
        """Computes q_t, both addresses, c_t and p_t, and s_t."""
        query, context, alignments = self.decoder.attend(inputs, state.hidden, source.sentence)
        previous = source.previous
        weights = self.previous_attention(query, previous.keys, previous.mask)  # [B, K, S']
        weights *= previous.mask  # without a sentence, the softmax is over padding alone
        previous_context = merge_beams(weights @ previous.annotations)  # p_t
        from_previous = product(previous_context, self.previous_state_kernel)
        hidden = self.decoder.state_gru(context, query, from_previous)
        return StepOutput(
            output=tf.concat([hidden, context, previous_context], axis=-1),
            state=PreviousState(hidden),
            diagnostics={"alignments": alignments, "previous_alignments": merge_beams(weights)},
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns `tanh(W_s s_t + W_y y_{t-1} + W_c c_t + W_r p_t)` with dropout: `[M, R]`."""
        width = self.annotation_width
        outputs, previous_context = tf.split(outputs, [self.output_width - width, width], axis=-1)
        from_previous = product(previous_context, self.previous_readout_kernel)
        readout = self.deep_output(outputs, embedded, from_previous)
        return masks.dropout("readout", self.hparams.readout_dropout, readout)
