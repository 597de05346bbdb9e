"""RNNSearch whose attention knows what it has covered (Tu et al. 2016, section 3).

"Modeling Coverage for Neural Machine Translation" (arXiv:1601.04811). Attention has no record of
its past: it may translate a word twice and leave out another. A coverage C_{t,j} of d numbers for
each source position j records it, and enters the score:

    e_{t,j} = v . tanh(W_a q_t + U_a h_j + V_a C_{t-1,j}),  a_t = softmax_j(e_{t,j}),  C_0 = 0   (1)
    linguistic, d = 1:   C_{t,j} = C_{t-1,j} + a_{t,j} / Phi_j,  Phi_j = N sigmoid(u_f . h_j)    (2)
    neural:  z = sigmoid(U_z C_{t-1,j} + w_z a_{t,j} + H_z h_j + S_z s_{t-1}),  r likewise       (3)
             k = tanh(r * (U C_{t-1,j}) + w a_{t,j} + H h_j + S s_{t-1})                         (4)
             C_{t,j} = (1 - z) * C_{t-1,j} + z * k                                               (5)

Without fertility, Phi_j = 1. The numbers of the equations are those of this page.

Open in the paper, or different in its code, and settled here: the neural model reads s_{t-1}, as in
both releases of the authors' code, though the attention's query is q_t, as in the second; the reset
gate comes after the recurrent product, as in the second; there are no biases, as in the first,
which fits the paper's parameter counts (1,000 linguistic, 3,000 with fertility, 100,330 neural at
d = 10). Phi is at least 0.05, since 1 / Phi has no bound. All new weights but U start from
N(0, 0.001^2), as in the first release, w too, which started at 0 there: the model starts as the
RNNSearch that it is trained from.
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

_MIN_FERTILITY = 0.05


class CoverageState(NamedTuple):
    """State between steps; both tensors belong to the hypothesis."""

    hidden: tf.Tensor  # [B, U] s_{t-1}
    coverage: tf.Tensor  # [B, S, d] C_{t-1}


class CoverageSource(NamedTuple):
    """Constants of a step."""

    sentence: KeyedAnnotations
    of_annotations: tf.Tensor  # [B, 1, S] Phi, or [B, 1, S, 3d] H h of the neural model


class LinguisticCoverage(tf.Module):
    """The sum of the attention so far, in shares of what a word needs (2)."""

    width = 1  # d

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates u_f `[D]` of a model with fertility."""
        super().__init__(name="linguistic_coverage")
        self._max_fertility, self.fertility_vector = hparams.max_fertility, None
        if hparams.coverage_model == "fertility":
            deviation = hparams.coverage_init_weight
            self.fertility_vector = weights.normal(
                "fertility_vector", [annotation_width], deviation
            )

    def prepare(self, encoded: EncoderOutput) -> tf.Tensor:
        """Returns Phi `[B, 1, S]`."""
        if self.fertility_vector is None:
            return tf.ones_like(encoded.mask)[:, None]
        score = tf.reduce_sum(encoded.annotations * self.fertility_vector, axis=-1)
        fertility = tf.maximum(self._max_fertility * tf.sigmoid(score), _MIN_FERTILITY)  # (2)
        return fertility[:, None]

    def __call__(
        self, state: CoverageState, alignments: tf.Tensor, fertility: tf.Tensor
    ) -> tf.Tensor:
        """Maps C_{t-1}, a_t `[B, K, S]` and Phi to C_t `[B*K, S, 1]`."""
        return state.coverage + merge_beams(alignments / fertility)[..., None]  # (2)


class NeuralCoverage(tf.Module):
    """A GRU for each position, all with the same weights (3-5)."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates U `[d, 3d]`, w `[3d]`, H `[D, 3d]` and S `[U, 3d]`, gates z, r, k in columns."""
        super().__init__(name="neural_coverage")
        size, deviation = hparams.coverage_size, hparams.coverage_init_weight
        self.width = size
        self.recurrent_kernel = weights.recurrent("coverage_recurrent_kernel", size, 3)
        self.alignment_vector = weights.normal("coverage_alignment_vector", [3 * size], deviation)
        self.memory_kernel = weights.normal(
            "coverage_memory_kernel", [annotation_width, 3 * size], deviation
        )
        self.state_kernel = weights.normal(
            "coverage_state_kernel", [hparams.num_units, 3 * size], deviation
        )

    def prepare(self, encoded: EncoderOutput) -> tf.Tensor:
        """Returns H h `[B, 1, S, 3d]`."""
        return product(encoded.annotations, self.memory_kernel)[:, None]

    def __call__(
        self, state: CoverageState, alignments: tf.Tensor, of_annotations: tf.Tensor
    ) -> tf.Tensor:
        """Maps C_{t-1}, s_{t-1}, a_t `[B, K, S]` and H h to C_t `[B*K, S, d]`."""
        size, coverage = self.width, state.coverage
        of_state = split_beams(product(state.hidden, self.state_kernel), alignments)
        inputs = alignments[..., None] * self.alignment_vector + of_annotations
        inputs = merge_beams(inputs + of_state[:, :, None])  # [B*K, S, 3d]
        recurrent = product(coverage, self.recurrent_kernel)
        gates_in, candidate_in = tf.split(inputs, [2 * size, size], axis=-1)
        gates_of_c, candidate_of_c = tf.split(recurrent, [2 * size, size], axis=-1)
        z, r = tf.split(tf.sigmoid(gates_in + gates_of_c), 2, axis=-1)  # (3)
        candidate = tf.tanh(candidate_in + r * candidate_of_c)  # (4)
        return coverage + z * (candidate - coverage)  # (5)


class CoverageCell(DecoderCell):
    """`q_t = GRU1(s_{t-1}, y_{t-1})`, a_t from q_t, h and C_{t-1} (1), `s_t = GRU2(q_t, c_t)`."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates RNNSearch's weights, those of the coverage, and V_a `[d, A]`."""
        super().__init__(hparams, annotation_width, weights)
        neural = hparams.coverage_model == "neural"
        self.start = MeanStart(hparams, annotation_width, weights)
        self.decoder = ConditionalGRU(hparams, annotation_width, weights)
        self.deep_output = Readout(hparams, annotation_width, weights)
        self.coverage = (NeuralCoverage if neural else LinguisticCoverage)(
            hparams, annotation_width, weights
        )
        shape = [self.coverage.width, hparams.attention_width]
        self.coverage_kernel = weights.normal(
            "coverage_kernel", shape, hparams.coverage_init_weight
        )
        self.output_width = hparams.num_units + annotation_width
        self.readout_width = self.deep_output.width

    def initial_state(self, encoded: EncoderOutput) -> CoverageState:
        """Returns `s_0 = tanh(W_init mean_j h_j + b)` and C_0 = 0."""
        hidden = self.start(encoded.annotations, encoded.length)
        nothing = tf.zeros_like(encoded.annotations[..., :1])
        return CoverageState(hidden, tf.repeat(nothing, self.coverage.width, axis=-1))

    def prepare(self, encoded: EncoderOutput) -> CoverageSource:
        """Projects the annotations to keys, and to their part of the coverage: Phi, or H h."""
        return CoverageSource(
            sentence=self.decoder.prepare(encoded.annotations, encoded.mask),
            of_annotations=self.coverage.prepare(encoded),
        )

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects words `[..., E]` to their part of GRU1's pre-activations, `[..., 3U]`."""
        embedded = masks.dropout("input", self.hparams.dropout, embedded)
        return self.decoder.query_gru.project(embedded)

    def step(self, inputs: tf.Tensor, state: CoverageState, source: CoverageSource) -> StepOutput:
        """Computes q_t, a_t, c_t, s_t and C_t."""
        sentence, decoder = source.sentence, self.decoder
        query = decoder.query_gru.from_projected(inputs, state.hidden)  # q_t
        covered = split_beams(product(state.coverage, self.coverage_kernel), sentence.mask)
        alignments = decoder.attention(query, sentence.keys, sentence.mask, covered)  # (1)
        context = merge_beams(alignments @ sentence.annotations)  # c_t
        hidden = decoder.state_gru(context, query)  # s_t
        coverage = self.coverage(state, alignments, source.of_annotations)  # (2), or (3-5)
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=CoverageState(hidden, coverage),
            diagnostics=self._diagnostics(alignments, coverage, source),
        )

    def _diagnostics(
        self, alignments: tf.Tensor, coverage: tf.Tensor, source: CoverageSource
    ) -> dict[str, tf.Tensor]:
        mask = source.sentence.mask  # the coverage of padding may move: it is not shown
        extent = tf.sqrt(tf.reduce_mean(tf.square(coverage), axis=-1))
        diagnostics = {
            "alignments": merge_beams(alignments),
            "coverage": merge_beams(split_beams(extent, mask) * mask),
        }
        if self.hparams.coverage_model == "fertility":
            diagnostics["fertility"] = merge_beams(
                source.of_annotations * mask * tf.ones_like(alignments)
            )
        return diagnostics

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns `tanh(W_s s_t + W_y y_{t-1} + W_c c_t)` with dropout: `[M, R]`."""
        readout = self.deep_output(outputs, embedded)
        return masks.dropout("readout", self.hparams.readout_dropout, readout)
