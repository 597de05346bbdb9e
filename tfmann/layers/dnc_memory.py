"""The memory of a differentiable neural computer (Graves et al. 2016, Nature 538, Methods).

Letters are the paper's: xi the interface vector, u usage, a allocation, w^w and w^r write and read
weights, c^w and c^r content weights, M memory, L links, p precedence, b and f backward and forward
weights, pi read modes. Each setting `dnc_*` is a repair of its own: masks, de-allocation and sharp
links of Csordás & Schmidhuber 2019 (arXiv:1904.10278), reading by content alone and a normalised
interface of Franke et al. 2018 (arXiv:1807.02658). For speed, `MemoryStep` computes two arguments
of a step, from which content weights follow: `dots`, the products of the keys with the slots, and
`squares`, the squared lengths of the slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.config import DNCOptions
from tfmann.layers.dnc_interface import DNCInterface, Interface
from tfmann.layers.initializers import VariableFactory
from tfmann.memory import access, allocation
from tfmann.ops.compiled_step import MemoryStep

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
    link: Any  # [B, H, N, N] L_t; () where reads are by content alone
    precedence: Any  # [B, H, N] p_t; () likewise


class DNCMemory(tf.keras.layers.Layer):
    """N slots of W numbers, R read heads, H write heads; it reads what it has just written.

    The paper has one write head. Several take free slots one after the other, then all erase and
    all add, and each has links of its own, as in deepmind/dnc.
    """

    def __init__(self, hparams: DNCOptions, units: int, weights: VariableFactory):
        """Creates the interface layer."""
        super().__init__(name="memory")
        self.slots, self.width = hparams.num_memory_locations, hparams.memory_unit_size
        self.readers, self.writers = hparams.read_heads, hparams.write_heads
        self.deallocates, self.has_links = hparams.dnc_deallocation, not hparams.dnc_content_only
        links = self.writers * self.slots * self.slots if self.has_links else 0
        self.numbers = self.slots * self.width + links
        self.interface = DNCInterface(hparams, units, weights)

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
            link=zeros(h, n, n) if self.has_links else (),
            precedence=zeros(h, n) if self.has_links else (),
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
        interface = self.interface.emit(hidden)  # xi_t
        state, allocation_weights, write_content_weights = self._write(interface, state)
        state, read_content_weights = self._read(interface, state)
        return state, {
            **_write_diagnostics(interface, state),
            "allocation_weights": allocation_weights,
            **_read_diagnostics(interface, state),
            "content_weights": tf.concat([read_content_weights, write_content_weights], axis=1),
        }

    def read_again(
        self, hidden: tf.Tensor, state: DNCMemoryState, diagnostics: Mapping[str, tf.Tensor]
    ) -> tuple[DNCMemoryState, dict[str, tf.Tensor]]:
        """Reads in a further hop of a step what the first hop wrote and linked.

        Args:
          hidden: `[B, U]` o^k.
          state: the memory after hop k-1, from whose w^r the links are followed.
          diagnostics: of this step, after hop k-1.

        Returns:
          the memory with new w^r and r; the diagnostics, with those of the reads replaced.
        """
        interface = self.interface.emit(hidden)
        state, content_weights = self._read(interface, state)
        _, write_content_weights = tf.split(
            diagnostics["content_weights"], [self.readers, self.writers], axis=1
        )
        return state, {
            **diagnostics,
            **_read_diagnostics(interface, state),
            "content_weights": tf.concat([content_weights, write_content_weights], axis=1),
        }

    def _write(
        self, interface: Interface, state: DNCMemoryState
    ) -> tuple[DNCMemoryState, tf.Tensor, tf.Tensor]:
        """Writes and links; returns the state before reading, and a_t and c^w_t `[B, H, N]`."""
        # Where to write: u_t, a_t, c^w_t and w^w_t = g^w (g^a a_t + (1 - g^a) c^w_t)
        retained = allocation.retention(interface.free_gates, state.read_weights)  # psi_t
        usage = allocation.update_usage(state.usage, state.write_weights, retained)
        written = _WRITE(
            state.memory,
            interface.write_keys,
            strengths=interface.write_strengths,
            masks=interface.write_masks,
            erase=interface.erase,
            vectors=interface.write_vectors,
            write_gates=interface.write_gates,
            allocation_gates=interface.allocation_gates,
            usage=usage,
            retained=retained if self.deallocates else None,
            link=state.link if self.has_links else None,
            precedence=state.precedence if self.has_links else None,
        )
        lookups = written.pop("allocation_weights"), written.pop("content_weights")
        return (state._replace(usage=usage, **written), *lookups)

    def _read(
        self, interface: Interface, state: DNCMemoryState
    ) -> tuple[DNCMemoryState, tf.Tensor]:
        """Reads M_t; returns the state with w^r_t and r_t, and c^r_t `[B, R, N]`."""
        reads, read_weights, content_weights = _READ(
            state.memory,
            interface.read_keys,
            strengths=interface.read_strengths,
            masks=interface.read_masks,
            modes=interface.read_modes,
            forward_sharpness=interface.forward_sharpness,
            backward_sharpness=interface.backward_sharpness,
            link=state.link if self.has_links else None,
            last_weights=state.read_weights if self.has_links else None,
        )
        return state._replace(reads=reads, read_weights=read_weights), content_weights


def _write(
    memory: tf.Tensor,
    keys: tf.Tensor,
    dots: tf.Tensor,
    squares: tf.Tensor,
    strengths: tf.Tensor,
    erase: tf.Tensor,
    vectors: tf.Tensor,
    write_gates: tf.Tensor,
    allocation_gates: tf.Tensor,
    usage: tf.Tensor,
    masks: tf.Tensor | None = None,
    retained: tf.Tensor | None = None,
    link: tf.Tensor | None = None,
    precedence: tf.Tensor | None = None,
) -> dict[str, tf.Tensor]:
    """Computes w^w_t, M_t, L_t and p_t, by the names of the state, and a_t and c^w_t."""
    allocation_weights = allocation.allocate(usage, write_gates, allocation_gates)
    content_weights = _content_weights(memory, keys, dots, squares, strengths, masks)
    write_weights = write_gates * access.interpolate(
        allocation_gates, allocation_weights, content_weights
    )
    if retained is not None:  # else the old content of a freed slot could still be found
        memory *= tf.expand_dims(retained, 2)
    written = {
        "allocation_weights": allocation_weights,
        "content_weights": content_weights,
        "write_weights": write_weights,
        "memory": access.erase_and_add(memory, write_weights, erase, vectors),
    }
    if link is not None:  # in which order: L_t and p_t
        written["link"] = allocation.update_link(link, precedence, write_weights)
        written["precedence"] = allocation.update_precedence(precedence, write_weights)
    return written


def _read(
    memory: tf.Tensor,
    keys: tf.Tensor,
    dots: tf.Tensor,
    squares: tf.Tensor,
    strengths: tf.Tensor,
    masks: tf.Tensor | None = None,
    modes: tf.Tensor | None = None,
    forward_sharpness: tf.Tensor | None = None,
    backward_sharpness: tf.Tensor | None = None,
    link: tf.Tensor | None = None,
    last_weights: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Computes r_t, w^r_t and c^r_t `[B, R, N]`."""
    read_weights = content_weights = _content_weights(memory, keys, dots, squares, strengths, masks)
    if link is not None:  # mixes b_t, c^r_t and f_t by pi
        backward, forward = allocation.follow_links(link, last_weights)
        if forward_sharpness is not None:
            backward = allocation.sharpen_moves(backward, backward_sharpness)
            forward = allocation.sharpen_moves(forward, forward_sharpness)
        read_weights = allocation.mix_read_weights(modes, backward, content_weights, forward)
    reads = access.read(read_weights, memory)  # r_t = M_t^T w^r_t
    return reads, read_weights, content_weights


def _content_weights(
    memory: tf.Tensor,
    keys: tf.Tensor,
    dots: tf.Tensor,
    squares: tf.Tensor,
    strengths: tf.Tensor,
    masks: tf.Tensor | None,
) -> tf.Tensor:
    """Computes `softmax(beta K[k, M(i)])`: c^w_t `[B, H, N]` or c^r_t `[B, R, N]`."""
    if masks is None:
        similarity = access.cosine_similarity(dots, keys, squares, NORM_FLOOR)
    else:
        similarity = access.masked_cosine_similarity(keys, memory, masks, NORM_FLOOR)
    return tf.nn.softmax(strengths * similarity)


_WRITE, _READ = MemoryStep(_write), MemoryStep(_read)


def _write_diagnostics(interface: Interface, state: DNCMemoryState) -> dict[str, tf.Tensor]:
    """Returns the diagnostics of a write, by the names of `cells.diagnostics`."""
    diagnostics = {
        "write_weights": state.write_weights,
        "usage": state.usage,
        "allocation_gate": interface.allocation_gates,
        "write_gate": interface.write_gates,
        "free_gate": interface.free_gates,
        "erase_norm": access.norm(interface.erase)[..., None],
        "add_norm": access.norm(interface.write_vectors)[..., None],
    }
    if interface.write_masks is not None:
        diagnostics["write_mask"] = interface.write_masks
    if interface.read_modes is not None:
        diagnostics["link"], diagnostics["precedence"] = state.link, state.precedence
    return diagnostics


def _read_diagnostics(interface: Interface, state: DNCMemoryState) -> dict[str, tf.Tensor]:
    """Returns the diagnostics of the reads, by the names of `cells.diagnostics`."""
    moves = {
        "read_modes": interface.read_modes,
        "read_mask": interface.read_masks,
        "backward_sharpness": interface.backward_sharpness,
        "forward_sharpness": interface.forward_sharpness,
    }
    present = {name: value for name, value in moves.items() if value is not None}
    return {"read_weights": state.read_weights, **present}
