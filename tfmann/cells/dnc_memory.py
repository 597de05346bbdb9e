"""A DNC's memory with its heads, as a part of cells (Graves et al. 2016, Methods)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.recurrent import product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, allocation, writing

# Inside the norms of the similarity, as in deepmind/dnc. The allocation's own epsilon leaves a
# faint copy of every item on free slots; a cosine blind to length reads the copies as the item.
NORM_FLOOR = 1e-6


class DNCMemoryState(NamedTuple):
    """What one step leaves for the next; all zero at first."""

    reads: tf.Tensor  # [B, R, W] r_t
    read_weights: tf.Tensor  # [B, R, N]
    write_weights: tf.Tensor  # [B, H, N]
    memory: tf.Tensor  # [B, N, W] M_t
    usage: tf.Tensor  # [B, N]
    link: tf.Tensor  # [B, H, N, N]
    precedence: tf.Tensor  # [B, H, N]


class Interface(NamedTuple):
    """What the controller says to the memory at a step."""

    read_keys: tf.Tensor  # [B, R, W]
    read_strengths: tf.Tensor  # [B, R, 1]
    write_keys: tf.Tensor  # [B, H, W]
    write_strengths: tf.Tensor  # [B, H, 1]
    erase: tf.Tensor  # [B, H, W]
    write_vectors: tf.Tensor  # [B, H, W]
    free_gates: tf.Tensor  # [B, R, 1]
    allocation_gates: tf.Tensor  # [B, H, 1]
    write_gates: tf.Tensor  # [B, H, 1]
    read_modes: tf.Tensor  # [B, R, 1 + 2H]


class DNCMemory(tf.keras.layers.Layer):
    """N slots of W numbers, R read heads, H write heads; reads what it has just written."""

    def __init__(self, hparams: HParams, units: int, weights: Weights):
        """Creates the interface layer `[U, RW + 3HW + 2R + 3H + R(1+2H)]`."""
        super().__init__(name="memory")
        self.slots, self.width = hparams.num_memory_locations, hparams.memory_unit_size
        self.readers, self.writers = r, h = hparams.read_heads, hparams.write_heads
        self.numbers = self.slots * (self.width + h * self.slots)  # the links are h*N*N
        w = self.width
        self._shapes = [(r, w), (r, 1), (h, w), (h, 1), (h, w), (h, w), (r, 1), (h, 1), (h, 1)]
        self._shapes.append((r, 1 + 2 * h))
        numbers = sum(heads * size for heads, size in self._shapes)
        self.interface_kernel = weights.matrix("interface_kernel", [units, numbers])
        self.interface_bias = weights.constant("interface_bias", np.zeros(numbers))

    def start(self, batch_size: tf.Tensor) -> DNCMemoryState:
        """The state before the first step."""
        n, r, h = self.slots, self.readers, self.writers

        def zeros(*shape: int) -> tf.Tensor:
            return tf.zeros([batch_size, *shape])

        return DNCMemoryState(
            reads=zeros(r, self.width),
            read_weights=zeros(r, n),
            write_weights=zeros(h, n),
            memory=zeros(n, self.width),
            usage=zeros(n),
            link=zeros(h, n, n),
            precedence=zeros(h, n),
        )

    def prepare(self, dtype: tf.DType) -> tf.Tensor:
        """The interface's kernel in the type of the products."""
        return tf.cast(self.interface_kernel, dtype)

    def step(
        self, hidden: tf.Tensor, state: DNCMemoryState, kernel: tf.Tensor
    ) -> tuple[DNCMemoryState, dict[str, tf.Tensor]]:
        """Usage, write weights, erase and add, links, read weights, reads."""
        said = self._interface(hidden, kernel)
        usage = allocation.usage_after(
            state.usage, state.write_weights, said.free_gates, state.read_weights
        )
        allocated = allocation.write_allocation(usage, said.write_gates, said.allocation_gates)
        sought = addressing.content_weights(
            said.write_keys, said.write_strengths, state.memory, NORM_FLOOR
        )
        mixed = addressing.interpolate(said.allocation_gates, allocated, sought)
        write_weights = said.write_gates * mixed
        memory = writing.erase_and_add(
            state.memory, write_weights, said.erase, said.write_vectors
        )
        link = allocation.link_after(state.link, state.precedence, write_weights)
        precedence = allocation.precedence_after(state.precedence, write_weights)
        content = addressing.content_weights(
            said.read_keys, said.read_strengths, memory, NORM_FLOOR
        )
        backward, forward = allocation.directional(link, state.read_weights)
        read_weights = allocation.read_weights_of(said.read_modes, backward, content, forward)
        new = DNCMemoryState(
            reads=writing.read(read_weights, memory),
            read_weights=read_weights,
            write_weights=write_weights,
            memory=memory,
            usage=usage,
            link=link,
            precedence=precedence,
        )
        return new, {
            "read_weights": read_weights,
            "write_weights": write_weights,
            "content_weights": tf.concat([content, sought], axis=1),
            "usage": usage,
            "allocation_weights": allocated,
            "allocation_gate": said.allocation_gates,
            "write_gate": said.write_gates,
            "free_gate": said.free_gates,
            "read_modes": said.read_modes,
            "link": link,
            "precedence": precedence,
            "erase_norm": addressing.norm(said.erase)[..., None],
            "add_norm": addressing.norm(said.write_vectors)[..., None],
        }

    def _interface(self, hidden: tf.Tensor, kernel: tf.Tensor) -> Interface:
        """Cuts `W h + b` into its parts and squashes each as it must be."""
        numbers = product(hidden, kernel) + self.interface_bias
        sizes = [heads * size for heads, size in self._shapes]
        parts = [
            tf.reshape(part, [-1, *shape])
            for part, shape in zip(tf.split(numbers, sizes, axis=-1), self._shapes)
        ]
        raw = Interface(*parts)
        return raw._replace(
            read_strengths=1 + tf.nn.softplus(raw.read_strengths),
            write_strengths=1 + tf.nn.softplus(raw.write_strengths),
            erase=tf.sigmoid(raw.erase),
            free_gates=tf.sigmoid(raw.free_gates),
            allocation_gates=tf.sigmoid(raw.allocation_gates),
            write_gates=tf.sigmoid(raw.write_gates),
            read_modes=tf.nn.softmax(raw.read_modes),
        )
