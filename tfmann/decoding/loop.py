"""The loop over a decoder's steps in plain TensorFlow."""

from __future__ import annotations

from typing import Any, Protocol

import tensorflow as tf


class Decoder(Protocol):
    """The interface of a decoder that a loop runs.

    Attributes:
      cell: an RNN cell over states of rank 2.
      beam_width: hypotheses of a sentence; 0 of a decoder that follows one. A beam's `finished`
        replaces the last step's, because hypotheses change ranks; otherwise a row that has
        finished stays finished.
    """

    cell: Any
    beam_width: int

    @property
    def batch_size(self) -> tf.Tensor:
        """B, or the number of sentences of a beam search."""

    @property
    def output_size(self) -> Any:
        """A structure of shapes without batch, as TensorShapes or int vectors."""

    @property
    def output_dtype(self) -> Any:
        """The types of the outputs, in the same structure."""

    def initialize(self) -> tuple[tf.Tensor, Any, Any]:
        """Returns `finished`, the first inputs and the first state."""

    def step(self, time: tf.Tensor, inputs: Any, state: Any) -> tuple[Any, Any, Any, tf.Tensor]:
        """Returns the outputs, the state, the next inputs and `finished`."""


def decode(decoder: Decoder, maximum_iterations: tf.Tensor | None) -> tuple[Any, Any, tf.Tensor]:
    """Runs `backend.decode` by the operations of tfa's loop, in its order."""
    finished, inputs, state = decoder.initialize()
    outputs = tf.nest.map_structure(_array, decoder.output_size, decoder.output_dtype)

    def body(time, outputs, state, inputs, finished, lengths):
        lengths = tf.where(finished, lengths, time + 1)
        step_outputs, state, inputs, ended = decoder.step(time, inputs, state)
        outputs = tf.nest.map_structure(
            lambda array, value: array.write(time, value), outputs, step_outputs
        )
        finished = ended if decoder.beam_width else ended | finished
        return time + 1, outputs, state, inputs, finished, lengths

    _, outputs, state, _, _, lengths = tf.while_loop(
        lambda time, outputs, state, inputs, finished, lengths: ~tf.reduce_all(finished),
        body,
        (tf.constant(0), outputs, state, inputs, finished, tf.zeros_like(finished, tf.int32)),
        parallel_iterations=32,
        maximum_iterations=maximum_iterations,
    )
    return tf.nest.map_structure(lambda array: array.stack(), outputs), state, lengths


def _array(size: Any, dtype: tf.DType) -> tf.TensorArray:
    """Makes a TensorArray for the outputs of all steps."""
    if not isinstance(size, tf.TensorShape):
        size = tf.TensorShape([None] * size.shape[0])
    shape = tf.TensorShape([None]).concatenate(size)
    return tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)
