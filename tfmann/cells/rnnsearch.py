"""RNNSearch with two GRUs (Bahdanau et al. 2015): the baseline of Meng 2018 and Tu 2018."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.conditional_gru import ConditionalGRU, KeyedAnnotations, MeanStart, Readout
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory


class RNNSearchState(NamedTuple):
    """State between steps."""

    hidden: tf.Tensor  # [B, U] s_{t-1}


class RNNSearchCell(DecoderCell):
    """`q_t = GRU1(s_{t-1}, y_{t-1})`, `c_t = sum_j a_j(q_t) h_j`, `s_t = GRU2(q_t, c_t)`.

    Unlike Bahdanau et al., this is the decoder of dl4mt and Nematus, which Meng et al. 2018
    describe: two GRUs and not one, the query q_t and not s_{t-1}, no maxout in the readout, and s_0
    from the mean annotation, not from the backward encoder's state. The parameter counts of Meng et
    al. (Table 1, 53.98M) require the widths, one bias per gate, and no bias in attention and
    readout. The 84.2M of Tu et al. 2018, Table 5, fit a single GRU; at their sizes this decoder has
    86.67M.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates the map to s_0, both GRUs with the attention, and the readout."""
        super().__init__(hparams, annotation_width, weights)
        self.start = MeanStart(hparams, annotation_width, weights)
        self.decoder = ConditionalGRU(hparams, annotation_width, weights)
        self.deep_output = Readout(hparams, annotation_width, weights)
        self.output_width = hparams.num_units + annotation_width
        self.readout_width = self.deep_output.width

    def initial_state(self, encoded: EncoderOutput) -> RNNSearchState:
        """Returns `s_0 = tanh(W_init mean_j h_j + b)`."""
        return RNNSearchState(self.start(encoded.annotations, encoded.length))

    def prepare(self, encoded: EncoderOutput) -> KeyedAnnotations:
        """Projects the annotations to keys."""
        return self.decoder.prepare(encoded.annotations, encoded.mask)

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects words `[..., E]` to their part of GRU1's pre-activations, `[..., 3U]`."""
        embedded = masks.dropout("input", self.hparams.dropout, embedded)
        return self.decoder.query_gru.project(embedded)

    def step(
        self, inputs: tf.Tensor, state: RNNSearchState, source: KeyedAnnotations
    ) -> StepOutput:
        """Computes q_t, a_t, c_t and s_t."""
        query, context, alignments = self.decoder.attend(inputs, state.hidden, source)
        hidden = self.decoder.state_gru(context, query)
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=RNNSearchState(hidden),
            diagnostics={"alignments": alignments},
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns `tanh(W_s s_t + W_y y_{t-1} + W_c c_t)` with dropout: `[M, R]`."""
        readout = self.deep_output(outputs, embedded)
        return masks.dropout("readout", self.hparams.readout_dropout, readout)
