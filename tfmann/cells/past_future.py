"""RNNSearch with layers for what is translated and what is not (Zheng et al. 2018).

"Modeling Past and Future for Neural Machine Translation" (arXiv:1711.09502), as in the authors'
code. a_t, the past, begins at 0 and adds up the contexts; f_t, the future, begins at s_0, a summary
of the source, and subtracts them:

    q_t = GRU1(s_{t-1}, y_{t-1}),  q'_t = GRU_m(q_t, [a_{t-1}; f_{t-1}])                        (1)
    c_t = sum_j a_j(q'_t) h_j,  s_t = GRU2(q'_t, c_t)                                           (2)
    a_t = GRU_a(a_{t-1}, c_t)                                                                   (3)
    gru:    f_t = GRU_f(f_{t-1}, c_t)                                                           (4)
    gru_o:  f_t = GRU_f(f_{t-1}, tanh(W_3 (W_1 f_{t-1} - W_2 c_t) + b))                         (5)
    gru_i:  z, r = sigmoid(U f_{t-1} + C c_t + b),  k = tanh(W_3 (W_1 f_{t-1} - r * (W_2 c_t)) + b')
            f_t = z * f_{t-1} + (1 - z) * k                                                     (6)
    readout tanh(W_s s_t + W_y y_{t-1} + W_c c_t + W_a a_t + W_f f_t)                           (7)

In training, what a layer has changed by predicts y_t too, through a softmax of its own (8):

    D^a_t = tanh(W (W_l a_t - W_r a_{t-1}) + b),  D^f_t = tanh(W (W_l f_{t-1} - W_r f_t) + b)

The numbers of the equations are those of this page.

Where paper and code differ, the code is followed: W_3, which the paper lacks in gru_i; both layers
reach attention and state through GRU_m, not as terms of the attention's score. Settled here: the
three losses are added; the code averages them, which Adam does not notice, but the threshold of
clipping would. The readout has no bias, as that of RNNSearch. The code can average the three
distributions when it translates; that is left out. Started from an RNNSearch, the model copies all
weights that it has by their names, including the GRUs and the attention, which the code initializes
at random, and both softmaxes of (8).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.beams import merge_beams
from tfmann.layers.conditional_gru import ConditionalGRU, KeyedAnnotations, MeanStart, Readout
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import GRUCell, product
from tfmann.memory import access


class PastFutureState(NamedTuple):
    """State between steps; all of it belongs to the hypothesis."""

    hidden: tf.Tensor  # [B, U] s_{t-1}
    past: tf.Tensor  # [B, U] a_{t-1}
    future: tf.Tensor  # [B, U] f_{t-1}


class FutureLayer(tf.Module):
    """Subtracts a context from what is left to be translated (4), (5) or (6)."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates GRU_f; or W_1, W_2, W_3 and b, with GRU_f (gru_o) or the gates (gru_i)."""
        super().__init__(name="future_layer")
        units, self._kind = hparams.num_units, hparams.future_layer
        if self._kind != "gru_i":
            width = annotation_width if self._kind == "gru" else units
            self.gru = GRUCell(width, units, weights.scope("future_gru"))
        if self._kind == "gru":
            return
        self.state_kernel = weights.matrix("future_state_kernel", [units, units])  # W_1
        self.context_kernel = weights.matrix("future_context_kernel", [annotation_width, units])
        self.candidate_kernel = weights.matrix("future_candidate_kernel", [units, units])  # W_3
        self.candidate_bias = weights.constant("future_candidate_bias", np.zeros(units))
        if self._kind == "gru_i":
            self.gate_kernel = weights.matrix("future_gate_kernel", [annotation_width, 2 * units])
            self.gate_recurrent_kernel = weights.recurrent("future_gate_recurrent_kernel", units, 2)
            self.gate_bias = weights.constant("future_gate_bias", np.zeros(2 * units))

    def __call__(self, future: tf.Tensor, context: tf.Tensor) -> tf.Tensor:
        """Maps f_{t-1} `[B, U]` and c_t `[B, D]` to f_t."""
        if self._kind == "gru":
            return self.gru(context, future)  # (4)
        before = product(future, self.state_kernel)  # W_1 f_{t-1}
        translated = product(context, self.context_kernel)  # W_2 c_t
        if self._kind == "gru_o":
            return self.gru(self._candidate(before - translated), future)  # (5)
        sums = product(future, self.gate_recurrent_kernel) + product(context, self.gate_kernel)
        z, r = tf.split(tf.sigmoid(sums + self.gate_bias), 2, axis=-1)  # (6)
        candidate = self._candidate(before - r * translated)
        return candidate + z * (future - candidate)  # (6)

    def _candidate(self, rest: tf.Tensor) -> tf.Tensor:
        return tf.tanh(product(rest, self.candidate_kernel) + self.candidate_bias)


class Change(tf.Module):
    """`tanh(W (W_l x - W_r y) + b)`: what a layer has gained or lost in a step (8)."""

    def __init__(self, layer: str, units: int, width: int, weights: VariableFactory):
        """Creates W_l `[U, U]`, W_r `[U, U]`, W `[U, R]` and b, named after the layer."""
        super().__init__(name=f"{layer}_change")
        self.gain_kernel = weights.matrix(f"{layer}_gain_kernel", [units, units])
        self.loss_kernel = weights.matrix(f"{layer}_loss_kernel", [units, units])
        self.kernel = weights.matrix(f"{layer}_change_kernel", [units, width])
        self.bias = weights.constant(f"{layer}_change_bias", np.zeros(width))

    def __call__(self, greater: tf.Tensor, smaller: tf.Tensor) -> tf.Tensor:
        """Maps states `[M, U]`, what is subtracted from and what is subtracted, to `[M, R]`."""
        rest = product(greater, self.gain_kernel) - product(smaller, self.loss_kernel)
        return tf.tanh(product(rest, self.kernel) + self.bias)


class Changes(tf.Module):
    """The changes of both layers, which predict the next word in training (8)."""

    names = ("past", "future")

    def __init__(self, sizes: list[int], units: int, width: int, weights: VariableFactory):
        """Creates a `Change` of each layer; `sizes` are those of the parts of an output."""
        super().__init__(name="changes")
        self._sizes = sizes
        self.past, self.future = (Change(layer, units, width, weights) for layer in self.names)

    def __call__(self, outputs: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns D^a_t and D^f_t (8) of outputs `[M, O]`: `[M, R]` each."""
        _, past, future, past_before, future_before = tf.split(outputs, self._sizes, axis=-1)
        return self.past(past, past_before), self.future(future_before, future)


class PastFutureCell(DecoderCell):
    """Query with both layers (1), attention and state (2), past (3), future (4-6)."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates RNNSearch's weights, GRU_m, GRU_a, the future layer, W_a and W_f, and (8)."""
        super().__init__(hparams, annotation_width, weights)
        units = hparams.num_units
        self.start = MeanStart(hparams, annotation_width, weights)
        self.decoder = ConditionalGRU(hparams, annotation_width, weights)
        self.deep_output = Readout(hparams, annotation_width, weights)
        self.readout_width = self.deep_output.width
        self.merge_gru = GRUCell(2 * units, units, weights.scope("merge_gru"))
        self.past_gru = GRUCell(annotation_width, units, weights.scope("past_gru"))
        self.future_layer = FutureLayer(hparams, annotation_width, weights)
        # the rows of the readout's kernel below those of [s_t; y_{t-1}; c_t]: W_a, W_f
        self.layers_kernel = weights.matrix(
            "layers_readout_kernel", [2 * units, self.readout_width]
        )
        self._sizes = [units + annotation_width, units, units, units, units]
        self.output_width = sum(self._sizes)
        if hparams.auxiliary_loss_weight:
            self.auxiliary = Changes(self._sizes, units, self.readout_width, weights)

    @staticmethod
    def ancestor(name: str) -> str:
        """Maps the softmaxes of (8) to that of RNNSearch."""
        return re.sub(r"/(past|future)_projection_", "/projection_", name)

    def initial_state(self, encoded: EncoderOutput) -> PastFutureState:
        """Returns `s_0 = tanh(W_init mean_j h_j + b)`, a_0 = 0 and f_0 = s_0."""
        hidden = self.start(encoded.annotations, encoded.length)
        return PastFutureState(hidden, past=tf.zeros_like(hidden), future=hidden)

    def prepare(self, encoded: EncoderOutput) -> KeyedAnnotations:
        """Projects the annotations to keys."""
        return self.decoder.prepare(encoded.annotations, encoded.mask)

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects words `[..., E]` to their part of GRU1's pre-activations, `[..., 3U]`."""
        embedded = masks.dropout("input", self.hparams.dropout, embedded)
        return self.decoder.query_gru.project(embedded)

    def step(
        self, inputs: tf.Tensor, state: PastFutureState, source: KeyedAnnotations
    ) -> StepOutput:
        """Computes q'_t, c_t, s_t, a_t and f_t; the output has a_{t-1} and f_{t-1} too, for (8)."""
        decoder = self.decoder
        query = decoder.query_gru.from_projected(inputs, state.hidden)  # (1) q_t
        query = self.merge_gru(tf.concat([state.past, state.future], axis=-1), query)  # (1) q'_t
        alignments = decoder.attention(query, source.keys, source.mask)  # [B, K, S]
        context = merge_beams(alignments @ source.annotations)  # (2) c_t
        hidden = decoder.state_gru(context, query)  # (2) s_t
        past = self.past_gru(context, state.past)  # (3) a_t
        future = self.future_layer(state.future, context)  # (4), (5) or (6) f_t
        parts = [hidden, context, past, future, state.past, state.future]
        return StepOutput(
            output=tf.concat(parts, axis=-1),
            state=PastFutureState(hidden, past, future),
            diagnostics={
                "alignments": merge_beams(alignments),
                "past_change": access.norm(past - state.past)[:, None],
                "future_change": access.norm(future - state.future)[:, None],
            },
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns (7) with dropout: `[M, R]`."""
        outputs, past, future, *_ = tf.split(outputs, self._sizes, axis=-1)
        of_layers = product(tf.concat([past, future], axis=-1), self.layers_kernel)
        readout = self.deep_output(outputs, embedded, of_layers)
        return masks.dropout("readout", self.hparams.readout_dropout, readout)
