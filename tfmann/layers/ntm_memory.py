"""The memory of a neural Turing machine and its heads (Graves et al. 2014, arXiv:1410.5401).

Equation numbers are those of Collier & Beel 2019: content (3, 4), interpolation (5), shift (6),
sharpening (7), read (8), erase (9), add (10). In Graves et al. these are 5 to 9, 2, 3 and 4. For
speed, `MemoryStep` computes two arguments of a step: `dots`, the products k . M(i) of (4), and
`squares`, the squared lengths |M(i)|^2 of the slots.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.config import NTMOptions
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product
from tfmann.memory import access
from tfmann.ops.compiled_step import MemoryStep

HEAD_CLIP = 20.0  # "stable NTM" (Collier & Beel 2018): bounds strength and sharpening

# A tape: every address begins at the first slot (weight 0.99 with 64 slots). A read address is 0.95
# content, with a strength of 5; a write address is 0.95 the last one, shifted by one slot (0.96).
_TAPE_ADDRESS = 10.0
_READ_STRENGTH, _READ_GATE = 5.0, 3.0
_WRITE_GATE, _WRITE_MOVE = -3.0, 4.0


class NTMMemoryState(NamedTuple):
    """The memory between steps."""

    reads: tf.Tensor  # [B, R, W] r_t
    weights: tf.Tensor  # [B, R + H, N] w_t of the read heads, then of the write heads
    memory: tf.Tensor  # [B, N, W] M_t


class NTMMemory(tf.keras.layers.Layer):
    """N slots of W numbers, R read heads, H write heads, J = 2 shift_range + 1 shift taps.

    Unlike the paper, whose equations 3 and 8 have M_t, reads see M_{t-1}, as in the authors' NTM:
    a read need not wait for a write. Then all heads erase, then all add. The memory starts at a
    trainable 1e-6, the addresses at the softmax and the reads at the tanh of learned numbers. If
    a first address is spread over all slots, the first write goes everywhere, all slots stay alike,
    and training leaves this state slowly; `address_start` raises the first slot's weight, and
    `head_start` lets the heads begin as on a tape (docs/recipes.md).
    """

    def __init__(self, hparams: NTMOptions, units: int, weights: VariableFactory):
        """Creates the heads' layer `[U, (R+H)(W+J+3) + 2HW]` and the start values."""
        super().__init__(name="memory")
        self.slots, self.width = hparams.num_memory_locations, hparams.memory_unit_size
        self.numbers = self.slots * self.width
        self.readers, self.writers = hparams.read_heads, hparams.write_heads
        self.taps = 2 * hparams.shift_range + 1
        heads = self.readers + self.writers
        parameters = heads * (self.width + self.taps + 3) + 2 * self.writers * self.width
        self.head_kernel = weights.matrix("head_kernel", [units, parameters])
        tape = hparams.head_start == "tape"
        bias = self._tape_bias() if tape else np.zeros([heads, self.width + self.taps + 3])
        vectors = np.zeros(2 * self.writers * self.width)
        self.head_bias = weights.constant("head_bias", np.concatenate([bias.ravel(), vectors]))
        # a view: the budget is checked before anything of this size is made
        start = np.broadcast_to(1e-6, [self.slots, self.width])
        self.initial_memory = weights.constant("initial_memory", start)
        first = np.zeros([heads, self.slots])
        first[:, 0] = hparams.address_start + (_TAPE_ADDRESS if tape else 0.0)
        self.initial_weights = weights.matrix("initial_weights", first.shape, plus=first)
        self.initial_reads = weights.matrix("initial_reads", [self.readers, self.width])

    def _tape_bias(self) -> np.ndarray:
        """Returns biases `[R + H, W + J + 3]` with which the heads begin as on a tape."""
        bias = np.zeros([self.readers + self.writers, self.width + self.taps + 3])
        strength, gate, middle = self.width, self.width + 1, self.width + 2 + self.taps // 2
        bias[: self.readers, [strength, gate]] = _READ_STRENGTH, _READ_GATE
        bias[self.readers :, [gate, middle + 1]] = _WRITE_GATE, _WRITE_MOVE
        return bias

    def initial_state(self, batch_size: tf.Tensor) -> NTMMemoryState:
        """Returns r_0, w_0 and M_0."""

        def rows(start: tf.Tensor) -> tf.Tensor:
            return tf.tile(start[None], [batch_size, 1, 1])

        return NTMMemoryState(
            reads=rows(tf.tanh(self.initial_reads)),
            weights=rows(tf.nn.softmax(self.initial_weights)),
            memory=rows(tf.identity(self.initial_memory)),
        )

    def step(
        self, hidden: tf.Tensor, state: NTMMemoryState
    ) -> tuple[NTMMemoryState, dict[str, tf.Tensor]]:
        """Addresses, reads and writes once.

        Args:
          hidden: `[B, U]` h_t of the controller.
          state: M_{t-1} and w_{t-1}.

        Returns:
          M_t, w_t and r_t; diagnostics (`cells.diagnostics`).
        """
        heads, vectors = self._parameters(hidden)
        keys, moves = self._keys(heads)
        vectors = tf.reshape(vectors, [-1, self.writers, 2 * self.width])
        reads, weights, memory, diagnostics = _read_and_write(self.readers)(
            state.memory, keys, moves=moves, vectors=vectors, last_weights=state.weights
        )
        read_weights, write_weights = tf.split(weights, [self.readers, self.writers], axis=1)
        return NTMMemoryState(reads, weights, memory), {
            **diagnostics,
            "read_weights": read_weights,
            "write_weights": write_weights,
        }

    def read(self, hidden: tf.Tensor, state: NTMMemoryState) -> NTMMemoryState:
        """Reads M_{t-1} in a hop before the last; the write heads stay where they are.

        Args:
          hidden: `[B, U]` o^k.
          state: M_{t-1} and the addresses after hop k-1.

        Returns:
          the state with new addresses and reads of the read heads.
        """
        sizes = [self.readers, self.writers]
        heads, _ = tf.split(self._parameters(hidden)[0], sizes, axis=1)
        last_weights, write_weights = tf.split(state.weights, sizes, axis=1)
        keys, moves = self._keys(heads)
        reads, read_weights = _READ(state.memory, keys, moves=moves, last_weights=last_weights)
        return state._replace(reads=reads, weights=tf.concat([read_weights, write_weights], axis=1))

    def _parameters(self, hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the heads' parameters `[B, R+H, W+J+3]`, and e_t and a_t of writes `[B, 2HW]`.

        They are neither clipped nor squashed yet.
        """
        parameters = product(hidden, self.head_kernel) + self.head_bias
        heads, vectors = tf.split(parameters, [-1, 2 * self.writers * self.width], axis=-1)
        shape = [-1, self.readers + self.writers, self.width + self.taps + 3]
        return tf.reshape(heads, shape), vectors

    def _keys(self, heads: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Splits `[B, n, W+J+3]` into k_t `[B, n, W]` and beta, g, s and gamma `[B, n, J+3]`.

        Clipping the keys would change nothing: in float32 tanh is 1 from 10 on.
        """
        keys, moves = tf.split(heads, [self.width, self.taps + 3], axis=-1)
        return tf.tanh(keys), moves


@functools.cache
def _read_and_write(readers: int) -> MemoryStep:
    """Returns the step of all heads, of which the first `readers` read and the others write."""

    def compute(
        memory: tf.Tensor,
        keys: tf.Tensor,
        dots: tf.Tensor,
        squares: tf.Tensor,
        moves: tf.Tensor,
        vectors: tf.Tensor,
        last_weights: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
        weights, diagnostics = _address(keys, dots, squares, moves, last_weights)  # w_t (3-7)
        erase, add = tf.split(_clip(vectors), 2, axis=-1)
        erase, add = tf.sigmoid(erase), tf.tanh(add)  # e_t, a_t
        read_weights, write_weights = tf.split(weights, [readers, -1], axis=1)
        reads = access.read(read_weights, memory)  # r_t (8)
        written = access.erase_and_add(memory, write_weights, erase, add)  # M_t (9, 10)
        diagnostics["erase_norm"] = tf.expand_dims(access.norm(erase), 2)
        diagnostics["add_norm"] = tf.expand_dims(access.norm(add), 2)
        return reads, weights, written, diagnostics

    return MemoryStep(compute)


def _read(
    memory: tf.Tensor,
    keys: tf.Tensor,
    dots: tf.Tensor,
    squares: tf.Tensor,
    moves: tf.Tensor,
    last_weights: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    weights, _ = _address(keys, dots, squares, moves, last_weights)
    return access.read(weights, memory), weights


_READ = MemoryStep(_read)  # of read heads alone


def _address(
    keys: tf.Tensor, dots: tf.Tensor, squares: tf.Tensor, moves: tf.Tensor, last_weights: tf.Tensor
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Computes w_t `[B, n, N]` of n heads from k_t, `moves [B, n, J+3]` and w_{t-1} (3-7)."""
    strength, gate, kernel, gamma = tf.split(_clip(moves), [1, 1, -1, 1], axis=-1)
    strength = tf.nn.softplus(strength)  # beta_t
    gate, kernel = tf.sigmoid(gate), tf.nn.softmax(kernel)  # g_t, s_t
    gamma = 1 + tf.nn.softplus(gamma)  # gamma_t

    similarity = access.cosine_similarity(dots, keys, squares)  # K (4)
    content_weights = tf.nn.softmax(strength * similarity)  # w^c (3)
    gated_weights = access.interpolate(gate, content_weights, last_weights)  # w^g (5)
    shifted_weights = access.shift(gated_weights, kernel)  # w~ (6)
    weights = access.sharpen(shifted_weights, gamma, None)  # w_t (7)
    return weights, {
        "content_weights": content_weights,
        "interpolation_gate": gate,
        "shift_kernel": kernel,
        "sharpening": gamma,
    }


def _clip(numbers: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(numbers, -HEAD_CLIP, HEAD_CLIP)
