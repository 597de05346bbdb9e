"""An NTM's memory with its heads, as a part of cells (Graves et al. 2014; Collier & Beel 2019)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.recurrent import product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, writing

HPARAMS = {
    "shift_range": {
        "default": 1,
        "minimum": 0,
        "maximum": 64,
        "help": "How far an address moves in a step; J = 2 * shift_range + 1 taps.",
    },
    "address_start": {
        "default": 0.0,
        "help": "Added to the first slot's number in the softmax of an NTM's first addresses; 0: "
        "they begin spread over all slots.",
    },
    "head_start": {
        "default": "zero",
        "choices": ["zero", "tape"],
        "help": "ntm, mad: how an NTM's heads begin: all biases 0; or as on a tape, each write one "
        "slot further than the last, and reads by content.",
    },
}

HEAD_CLIP = 20.0  # "stable NTM" (Collier & Beel 2018): bounds strength and sharpening


# A tape: every address begins at the first slot (0.99 of 64). A read takes 0.95 of its address from
# the content, with a strength of 5; a write 0.95 from the last write, moved on by one slot (0.96).
_TAPE_ADDRESS = 10.0
_READ_STRENGTH, _READ_GATE = 5.0, 3.0
_WRITE_GATE, _WRITE_MOVE = -3.0, 4.0


class NTMMemoryState(NamedTuple):
    """What one step leaves for the next."""

    reads: tf.Tensor  # [B, R, W] r_t
    weights: tf.Tensor  # [B, R + H, N] addresses of the read heads, then of the write heads
    memory: tf.Tensor  # [B, N, W] M_t


class NTMMemory(tf.keras.layers.Layer):
    """N slots of W numbers, R read heads, H write heads, J = 2 shift_range + 1 shift taps.

    Reads see M_{t-1}; then all heads erase, then all add. Unlike the paper (its eq 8 reads M_t):
    so the authors' NTM does it, and so a read does not wait for a write. The memory starts at a
    trainable 1e-6, the addresses at the softmax and the reads at the tanh of learned numbers. Where
    these leave an address spread over all slots, a first write goes everywhere, all slots stay
    alike, and training is slow to leave that; `address_start` makes the first slot likelier, and
    `head_start` lets the heads begin as on a tape (docs/recipes.md).
    """

    def __init__(self, hparams: HParams, units: int, weights: Weights):
        """Creates the heads' layer `[U, (R+H)(W+J+3) + 2HW]` and the start values."""
        super().__init__(name="memory")
        self.slots, self.width = hparams.num_memory_locations, hparams.memory_unit_size
        self.numbers = self.slots * self.width
        self.readers, self.writers = hparams.read_heads, hparams.write_heads
        self.taps = 2 * hparams.shift_range + 1
        heads = self.readers + self.writers
        numbers = heads * (self.width + self.taps + 3) + 2 * self.writers * self.width
        self.head_kernel = weights.matrix("head_kernel", [units, numbers])
        tape = hparams.head_start == "tape"
        bias = self._tape_bias() if tape else np.zeros([heads, self.width + self.taps + 3])
        vectors = np.zeros(2 * self.writers * self.width)
        self.head_bias = weights.constant("head_bias", np.concatenate([bias.ravel(), vectors]))
        start = np.broadcast_to(1e-6, [self.slots, self.width])  # no memory before it is counted
        self.initial_memory = weights.constant("initial_memory", start)
        first = np.zeros([heads, self.slots])
        first[:, 0] = hparams.address_start + (_TAPE_ADDRESS if tape else 0.0)
        self.initial_weights = weights.matrix("initial_weights", first.shape, plus=first)
        self.initial_reads = weights.matrix("initial_reads", [self.readers, self.width])

    def _tape_bias(self) -> np.ndarray:
        """Biases `[R + H, W + J + 3]`: what each head begins with, as on a tape."""
        bias = np.zeros([self.readers + self.writers, self.width + self.taps + 3])
        strength, gate, middle = self.width, self.width + 1, self.width + 2 + self.taps // 2
        bias[: self.readers, [strength, gate]] = _READ_STRENGTH, _READ_GATE
        bias[self.readers :, [gate, middle + 1]] = _WRITE_GATE, _WRITE_MOVE
        return bias

    def start(self, batch_size: tf.Tensor) -> NTMMemoryState:
        """The state before the first step."""

        def rows(one: tf.Tensor) -> tf.Tensor:
            return tf.tile(one[None], [batch_size, 1, 1])

        return NTMMemoryState(
            reads=rows(tf.tanh(self.initial_reads)),
            weights=rows(tf.nn.softmax(self.initial_weights)),
            memory=rows(tf.identity(self.initial_memory)),
        )

    def prepare(self, dtype: tf.DType) -> tf.Tensor:
        """The heads' kernel in the type of the products."""
        return tf.cast(self.head_kernel, dtype)

    def step(
        self, hidden: tf.Tensor, state: NTMMemoryState, kernel: tf.Tensor
    ) -> tuple[NTMMemoryState, dict[str, tf.Tensor]]:
        """Heads' numbers from h `[B, U]`, addresses (3-7), reads (8), writes (9, 10)."""
        numbers = product(hidden, kernel) + self.head_bias
        numbers = tf.clip_by_value(numbers, -HEAD_CLIP, HEAD_CLIP)
        heads, vectors = tf.split(
            numbers, [-1, 2 * self.writers * self.width], axis=-1
        )
        weights, seen = self._address(heads, state)
        read_weights, write_weights = tf.split(weights, [self.readers, self.writers], axis=1)
        vectors = tf.reshape(vectors, [-1, self.writers, 2 * self.width])
        erase, add = tf.split(vectors, 2, axis=-1)
        erase, add = tf.sigmoid(erase), tf.tanh(add)
        new = NTMMemoryState(
            reads=writing.read(read_weights, state.memory),
            weights=weights,
            memory=writing.erase_and_add(state.memory, write_weights, erase, add),
        )
        seen.update(
            read_weights=read_weights,
            write_weights=write_weights,
            erase_norm=addressing.norm(erase)[..., None],
            add_norm=addressing.norm(add)[..., None],
        )
        return new, seen

    def _address(
        self, heads: tf.Tensor, state: NTMMemoryState
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Numbers `[B, (R+H)(W+J+3)]` to addresses `[B, R+H, N]`."""
        count = self.readers + self.writers
        heads = tf.reshape(heads, [-1, count, self.width + self.taps + 3])
        key, strength, gate, kernel, gamma = tf.split(
            heads, [self.width, 1, 1, self.taps, 1], axis=-1
        )
        gate, kernel, gamma = tf.sigmoid(gate), tf.nn.softmax(kernel), 1 + tf.nn.softplus(gamma)
        content = addressing.content_weights(
            tf.tanh(key), tf.nn.softplus(strength), state.memory
        )  # (3)
        gated = addressing.interpolate(gate, content, state.weights)  # (5)
        shifted = addressing.shift(gated, kernel)  # (6)
        weights = addressing.sharpen(shifted, gamma, None)  # (7)
        seen = {
            "content_weights": content,
            "interpolation_gate": gate,
            "shift_kernel": kernel,
            "sharpening": gamma,
        }
        return weights, seen
