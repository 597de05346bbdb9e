"""The memory of a differentiable neural computer (Graves et al. 2016, Nature 538, Methods).

Letters are the paper's: xi the interface vector, u usage, a allocation, w^w and w^r write and read
weights, c^w and c^r content weights, M memory, L links, p precedence, b and f backward and forward
weights, pi read modes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.config import ExternalMemoryOptions
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product
from tfmann.memory import access, allocation

# Inside the norms of the similarity, as in deepmind/dnc. The allocation's own epsilon leaves a
# faint copy of every item on free slots; a cosine blind to length reads the copies as the item.
NORM_FLOOR = 1e-6


class DNCMemoryState(NamedTuple):
    """The memory between steps; all zero at first."""

    reads: tf.Tensor  # [B, R, W] r_t
    read_weights: tf.Tensor  # [B, R, N] w^r_t
    write_weights: tf.Tensor  # [B, H, N] w^w_t
    memory: tf.Tensor  # [B, N, W] M_t
    usage: tf.Tensor  # [B, N] u_t
    link: tf.Tensor  # [B, H, N, N] L_t
    precedence: tf.Tensor  # [B, H, N] p_t


class Interface(NamedTuple):
    """The interface vector xi_t, in its parts."""

    read_keys: tf.Tensor  # [B, R, W] k^r
    read_strengths: tf.Tensor  # [B, R, 1] beta^r
    write_keys: tf.Tensor  # [B, H, W] k^w
    write_strengths: tf.Tensor  # [B, H, 1] beta^w
    erase: tf.Tensor  # [B, H, W] e
    write_vectors: tf.Tensor  # [B, H, W] v
    free_gates: tf.Tensor  # [B, R, 1] f
    allocation_gates: tf.Tensor  # [B, H, 1] g^a
    write_gates: tf.Tensor  # [B, H, 1] g^w
    read_modes: tf.Tensor  # [B, R, 1 + 2H] pi


class DNCMemory(tf.keras.layers.Layer):
    """N slots of W numbers, R read heads, H write heads; it reads what it has just written."""

    def __init__(self, hparams: ExternalMemoryOptions, units: int, weights: VariableFactory):
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

    def initial_state(self, batch_size: tf.Tensor) -> DNCMemoryState:
        """Returns zeros."""
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

    def step(
        self, hidden: tf.Tensor, state: DNCMemoryState
    ) -> tuple[DNCMemoryState, dict[str, tf.Tensor]]:
        """Writes, links and reads once.

        Args:
          hidden: `[B, U]` h_t of the controller.
          state: the memory after the last step.

        Returns:
          the memory after this step; diagnostics (`cells.diagnostics`).
        """
        interface = self._interface(hidden)  # xi_t
        # Where to write: u_t, a_t, c^w_t and w^w_t = g^w (g^a a_t + (1 - g^a) c^w_t)
        usage = allocation.update_usage(
            state.usage, state.write_weights, interface.free_gates, state.read_weights
        )
        allocation_weights = allocation.allocate(
            usage, interface.write_gates, interface.allocation_gates
        )
        write_content_weights = access.content_weights(
            interface.write_keys, interface.write_strengths, state.memory, NORM_FLOOR
        )
        write_weights = interface.write_gates * access.interpolate(
            interface.allocation_gates, allocation_weights, write_content_weights
        )
        # What is written, M_t, and in which order, L_t and p_t
        memory = access.erase_and_add(
            state.memory, write_weights, interface.erase, interface.write_vectors
        )
        link = allocation.update_link(state.link, state.precedence, write_weights)
        precedence = allocation.update_precedence(state.precedence, write_weights)
        # Where to read: c^r_t, b_t, f_t and w^r_t, their mixture by pi
        read_content_weights = access.content_weights(
            interface.read_keys, interface.read_strengths, memory, NORM_FLOOR
        )
        backward_weights, forward_weights = allocation.follow_links(link, state.read_weights)
        read_weights = allocation.mix_read_weights(
            interface.read_modes, backward_weights, read_content_weights, forward_weights
        )
        new_state = DNCMemoryState(
            reads=access.read(read_weights, memory),  # r_t = M_t^T w^r_t
            read_weights=read_weights,
            write_weights=write_weights,
            memory=memory,
            usage=usage,
            link=link,
            precedence=precedence,
        )
        return new_state, {
            **_diagnostics(interface, new_state),
            "content_weights": tf.concat([read_content_weights, write_content_weights], axis=1),
            "allocation_weights": allocation_weights,
        }

    def _interface(self, hidden: tf.Tensor) -> Interface:
        """Computes `xi_t = W h_t + b`, and splits it into parts, each squashed into its range."""
        vector = product(hidden, self.interface_kernel) + self.interface_bias
        sizes = [heads * size for heads, size in self._shapes]
        parts = [
            tf.reshape(part, [-1, *shape])
            for part, shape in zip(tf.split(vector, sizes, axis=-1), self._shapes)
        ]
        raw = Interface(*parts)
        return raw._replace(
            read_strengths=1 + tf.nn.softplus(raw.read_strengths),  # oneplus
            write_strengths=1 + tf.nn.softplus(raw.write_strengths),
            erase=tf.sigmoid(raw.erase),
            free_gates=tf.sigmoid(raw.free_gates),
            allocation_gates=tf.sigmoid(raw.allocation_gates),
            write_gates=tf.sigmoid(raw.write_gates),
            read_modes=tf.nn.softmax(raw.read_modes),
        )


def _diagnostics(interface: Interface, state: DNCMemoryState) -> dict[str, tf.Tensor]:
    """Names the parts of the interface and of the new state as in `cells.diagnostics`."""
    return {
        "read_weights": state.read_weights,
        "write_weights": state.write_weights,
        "usage": state.usage,
        "allocation_gate": interface.allocation_gates,
        "write_gate": interface.write_gates,
        "free_gate": interface.free_gates,
        "read_modes": interface.read_modes,
        "link": state.link,
        "precedence": state.precedence,
        "erase_norm": access.norm(interface.erase)[..., None],
        "add_norm": access.norm(interface.write_vectors)[..., None],
    }
