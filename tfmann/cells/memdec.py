"""A decoder with a small memory of its own (Wang et al. 2016): MemDec.

"Memory-enhanced Decoder for Neural Machine Translation" (arXiv:1606.02003). The decoder's GRU has
a memory of a few slots m_i (N = 8 in the paper), which every step reads and writes at one address:

    x_i = v . tanh(W_m m_i + W_s s_{t-1}),  g = sigmoid(w_g . s_{t-1})
    w_t = g softmax(x) + (1 - g) w_{t-1}                                                  (1)
    r_t = sum_i w_t(i) m_i                                                                (2)
    k_t = tanh(W_r r_t + W_y y_{t-1}),  c_t = sum_j a_j(k_t) h_j                          (3)
    s_t = GRU(s_{t-1}, [c_t; y_{t-1}; r_t])                                               (4)
    m_i <- m_i * (1 - w_t(i) sigmoid(W_e s_t)) + w_t(i) sigmoid(W_d s_t)                  (5)

The numbers of the equations are those of this page.

Open in the paper, or different in a later implementation by PaddlePaddle, and settled here: x_i has
a tanh, which the paper does not print; without it, s_{t-1} adds the same to every slot's score, and
the softmax cancels it. Reading comes before writing, at the same address, as in the paper. The
slots start at `sigmoid(W_I mean_j h_j + b)` plus noise, which alone tells them apart: the mean, as
in that implementation, since the sigmoid of the paper's sum is saturated; the noise is one draw
from N(0, 0.1^2) for all sentences, and a weight that is trained, so that checkpoints hold it. w_0
is 1 / N, so that w_t sums to 1. W_e, W_d and w_g have no bias. Where the model starts from an
RNNSearch, its GRU is new: RNNSearch has two here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.attention import AdditiveAttention
from tfmann.layers.beams import merge_beams
from tfmann.layers.conditional_gru import KeyedAnnotations, MeanStart, Readout, mean_annotation
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import GRUCell, product
from tfmann.memory import access

_NOISE = 0.1  # standard deviation


class MemDecState(NamedTuple):
    """State between steps; all of it belongs to the hypothesis."""

    hidden: tf.Tensor  # [B, U] s_{t-1}
    memory: tf.Tensor  # [B, N, W] m
    address: tf.Tensor  # [B, N] w_{t-1}


class MemDecSource(NamedTuple):
    """Constants of a step."""

    sentence: KeyedAnnotations
    slots: tf.Tensor  # [B, 1, N], 1: all slots exist


class MemDecCell(DecoderCell):
    """Address (1), read (2), attend (3), update the state (4), write (5)."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates s_0's map, the memory's start, both addresses, the GRU, W_e, W_d, the readout."""
        super().__init__(hparams, annotation_width, weights)
        units, embedding = hparams.num_units, hparams.embedding_width
        self.slots, width = hparams.num_memory_locations, hparams.memory_unit_size
        self.memory_numbers = self.slots * width
        depth = hparams.attention_width
        self.start = MeanStart(hparams, annotation_width, weights)
        self.memory_start_kernel = weights.matrix(
            "memory_initial_kernel", [annotation_width, width]
        )  # W_I
        self.memory_start_bias = weights.constant("memory_initial_bias", np.zeros(width))
        self.noise = weights.normal("initial_memory", [self.slots, width], _NOISE)
        self.slot_address = AdditiveAttention(units, width, depth, weights, "address_")
        self.gate_vector = weights.matrix("gate_vector", [units])  # w_g
        self.read_query_kernel = weights.matrix("read_query_kernel", [width, units])  # W_r
        self.word_query_kernel = weights.matrix("word_query_kernel", [embedding, units])  # W_y
        self.attention = AdditiveAttention(units, annotation_width, depth, weights)
        self.gru = GRUCell(annotation_width + width, units, weights.scope("decoder_gru"))
        # the rows of the GRU's kernel below those of [c_t; r_t]
        self.word_kernel = weights.matrix("word_kernel", [embedding, 3 * units])
        self.erase_kernel = weights.matrix("erase_kernel", [units, width])  # W_e
        self.add_kernel = weights.matrix("add_kernel", [units, width])  # W_d
        self.deep_output = Readout(hparams, annotation_width, weights)
        self.output_width = units + annotation_width
        self.readout_width = self.deep_output.width

    def initial_state(self, encoded: EncoderOutput) -> MemDecState:
        """Returns s_0, the slots `sigmoid(W_I mean_j h_j + b) + noise`, and w_0 = 1/N."""
        mean = mean_annotation(encoded.annotations, encoded.length)
        common = tf.sigmoid(tf.matmul(mean, self.memory_start_kernel) + self.memory_start_bias)
        return MemDecState(
            hidden=self.start(encoded.annotations, encoded.length),
            memory=common[:, None] + self.noise,
            address=tf.ones([tf.shape(common)[0], self.slots]) / self.slots,
        )

    def prepare(self, encoded: EncoderOutput) -> MemDecSource:
        """Projects the annotations to keys."""
        mask = encoded.mask[:, None]
        keys = self.attention.keys(encoded.annotations)
        return MemDecSource(
            sentence=KeyedAnnotations(encoded.annotations, keys, mask),
            slots=tf.ones([tf.shape(mask)[0], 1, self.slots]),
        )

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects words `[..., E]` to their part of k_t and of the GRU: `[..., U + 3U]`."""
        embedded = masks.dropout("input", self.hparams.dropout, embedded)
        of_query = product(embedded, self.word_query_kernel)
        return tf.concat([of_query, product(embedded, self.word_kernel)], axis=-1)

    def step(self, inputs: tf.Tensor, state: MemDecState, source: MemDecSource) -> StepOutput:
        """Computes w_t, r_t, c_t, s_t and the memory."""
        units, sentence = self.hparams.num_units, source.sentence
        word_query, word_sums = tf.split(inputs, [units, 3 * units], axis=-1)
        keys = self.slot_address.keys(state.memory)
        content = self.slot_address.per_hypothesis(state.hidden, keys, source.slots)
        content = merge_beams(content)  # [B*K, N] softmax(x)
        gate = tf.sigmoid(tf.reduce_sum(state.hidden * self.gate_vector, axis=-1, keepdims=True))
        address = access.interpolate(gate, content, state.address)  # (1) w_t
        read = access.read(address[:, None], state.memory)[:, 0]  # (2) r_t
        query = tf.tanh(product(read, self.read_query_kernel) + word_query)  # (3) k_t
        alignments = self.attention(query, sentence.keys, sentence.mask)  # [B, K, S]
        context = merge_beams(alignments @ sentence.annotations)  # (3) c_t
        hidden = self.gru(tf.concat([context, read], axis=-1), state.hidden, word_sums)  # (4) s_t
        erase = tf.sigmoid(product(hidden, self.erase_kernel))
        add = tf.sigmoid(product(hidden, self.add_kernel))
        memory = access.erase_and_add(  # (5)
            state.memory, weights=address[:, None], erase=erase[:, None], add=add[:, None]
        )
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=MemDecState(hidden, memory, address),
            diagnostics={  # one read head and one write head, which share their address
                "alignments": merge_beams(alignments),
                "read_weights": address[:, None],
                "write_weights": address[:, None],
                "content_weights": tf.stack([content, content], axis=1),
                "interpolation_gate": tf.stack([gate, gate], axis=1),
                "erase_norm": access.norm(erase)[:, None, None],
                "add_norm": access.norm(add)[:, None, None],
            },
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns `tanh(W_s s_t + W_y y_{t-1} + W_c c_t)` with dropout: `[M, R]`."""
        readout = self.deep_output(outputs, embedded)
        return masks.dropout("readout", self.hparams.readout_dropout, readout)
