"""A decoder cell as tfa.seq2seq's decoders take one.

tfa's decoders take states of rank 2 and keep nothing read-only. So a state is flattened here, and
what a step reads (the source, the cast weights) is bound into a throw-away layer made for each
trace. Diagnostics ride in the state's last slot and leave as outputs: tfa's own way to hand out
alignments is one re-ordering late under beam search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

import tensorflow as tf

from tfmann.cells import contract
from tfmann.cells.base import StepOutput

StepFunction = Callable[..., StepOutput]  # of inputs [B, I], state and what `run` is given


class FlatState(NamedTuple):
    """A state as tfa sees it: every leaf `[B, n]`, and the last step's diagnostics `[B, n]`."""

    leaves: tuple[tf.Tensor, ...]
    diagnostics: tuple[tf.Tensor, ...]


class BoundCell(tf.keras.layers.Layer):
    """A step function over states of any rank, as a cell over states of rank 2.

    Attributes:
      recorded: the diagnostics that leave a step, by name: tensors `[B, ...]` of their shapes.
    """

    def __init__(
        self,
        step: StepFunction,
        state: Any,
        output_width: int,
        recorded: Mapping[str, tf.Tensor] | None = None,
    ):
        """Binds `step`.

        Args:
          step: one step in logical shapes.
          state: the first state, a structure of float tensors `[B, ...]`.
          output_width: width of `StepOutput.output`.
          recorded: what to record: name to a tensor `[B, ...]` of the diagnostic's shape.
        """
        super().__init__(name="bound_cell")
        self._step, self._first_state = step, state
        leaves = tf.nest.flatten(state)
        self._output_width = output_width
        self._shapes = [tf.shape(leaf)[1:] for leaf in leaves]
        self._static_shapes = [leaf.shape[1:] for leaf in leaves]
        self.recorded = dict(recorded or {})
        self.output_size = tf.TensorShape([output_width])
        self.state_size = FlatState(
            leaves=tuple(_flat_shape(shape) for shape in self._static_shapes),
            diagnostics=tuple(_flat_shape(value.shape[1:]) for value in self.recorded.values()),
        )

    def first_state(self) -> FlatState:
        """Flattens the first state, and zeros as its diagnostics."""
        leaves = tuple(_flatten(leaf) for leaf in tf.nest.flatten(self._first_state))
        zeros = tuple(_flatten(tf.zeros_like(value)) for value in self.recorded.values())
        return FlatState(leaves, zeros)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None):
        """Returns the first state; Keras requires this method of every RNN cell."""
        del inputs, batch_size, dtype
        return self.first_state()

    def call(self, inputs: tf.Tensor, state: FlatState, training: bool | None = None):
        """Makes one step; returns its output and the new flattened state."""
        del training
        return self.run(inputs, state)

    def run(self, inputs: tf.Tensor, state: FlatState, *constants: Any):
        """Makes one step as `call`, with further arguments for the step function."""
        leaves = []
        for leaf, shape, static_shape in zip(state.leaves, self._shapes, self._static_shapes):
            if static_shape.rank > 1:
                known = tf.TensorShape([leaf.shape[0]]).concatenate(static_shape)
                leaf = tf.reshape(leaf, tf.concat([[-1], shape], axis=0))
                leaf = tf.ensure_shape(leaf, known)  # loops compare static shapes
            leaves.append(leaf)
        logical = tf.nest.pack_sequence_as(self._first_state, leaves)
        result = self._step(inputs, logical, *constants)
        contract.require_step(result, logical, self._output_width)
        new_leaves = tuple(_flatten(leaf) for leaf in tf.nest.flatten(result.state))
        diagnostics = tuple(_flatten(result.diagnostics[name]) for name in self.recorded)
        return result.output, FlatState(new_leaves, diagnostics)

    def restore(
        self, diagnostics: tuple[tf.Tensor, ...], leading_axes: int
    ) -> dict[str, tf.Tensor]:
        """Undoes the flattening of recorded diagnostics `[..., n]`, by name."""
        return {
            name: tf.reshape(
                value, tf.concat([tf.shape(value)[:leading_axes], tf.shape(example)[1:]], axis=0)
            )
            for (name, example), value in zip(self.recorded.items(), diagnostics)
        }


def _flat_shape(shape: tf.TensorShape) -> tf.TensorShape:
    return tf.TensorShape([shape.num_elements()])


def _flatten(leaf: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B, ...]` to `[B, n]`."""
    if leaf.shape.rank == 2:
        return leaf
    width = leaf.shape[1:].num_elements()
    if width is not None:
        return tf.reshape(leaf, [-1, width])
    return tf.reshape(leaf, [tf.shape(leaf)[0], tf.reduce_prod(tf.shape(leaf)[1:])])
