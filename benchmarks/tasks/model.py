"""A cell over real-valued inputs instead of embedded words, and the update that trains it.

The cells are those of the translation models, in the mode in which they read the source themselves
(`encoder_type` memory); no code here depends on a cell. Letters as in generate.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.tasks.control import LSTMCell
from benchmarks.tasks.generate import Task
from tfmann.cells.base import DecoderCell, EncoderOutput
from tfmann.config import HParams
from tfmann.layers.compute_weights import compute_weights, with_weights
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.models.seq2seq import make_cell
from tfmann.training.optimizer import make_optimizer

CONTROL = "lstm"
CELLS = ("ntm", "dnc", CONTROL)
# The repairs of a DNC, and several hops: the cell, and the settings that it does not have itself.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dnc-msd": ("dnc", {"dnc_masking": True, "dnc_deallocation": True, "dnc_sharp_links": True}),
    "dnc-content-only": ("dnc", {"dnc_content_only": True, "dnc_layer_norm": True}),
    "dnc-hops-2": ("dnc", {"memory_hops": 2}),
    "ntm-hops-2": ("ntm", {"memory_hops": 2}),
}


class TaskModel(tf.Module):
    """A model of a cell and a projection to one logit for every bit of the output."""

    def __init__(self, hparams: HParams, cell: str, output_width: int):
        """Creates the weights; `embedding_size` is the width of the inputs."""
        super().__init__(name="task_model")
        weights = VariableFactory(hparams, "task")
        make = LSTMCell if cell == CONTROL else make_cell
        self.cell: DecoderCell = make(hparams, 0, weights.scope("cell"))
        width = self.cell.readout_width
        self.projection_kernel = weights.matrix("projection_kernel", [width, output_width])
        self.projection_bias = weights.constant("projection_bias", np.zeros(output_width))

    def logits(self, inputs: tf.Tensor) -> tf.Tensor:
        """Computes logits `[T, B, O]` from inputs `[T, B, C]`; only the cell's steps are a loop."""
        steps, rows = tf.unstack(tf.shape(inputs)[:2])
        encoded = EncoderOutput(
            annotations=tf.zeros([rows, 1, 0]),
            mask=tf.zeros([rows, 1]),
            length=tf.zeros([rows], tf.int32),
            final_state=(),
        )
        cell = with_weights(self.cell, compute_weights(self.cell, tf.float32))
        outputs = _unroll(
            cell,
            cell.prepare_inputs(inputs, DropoutMasks.none()),
            cell.initial_state(encoded),
            cell.prepare(encoded),
        )
        flat = tf.reshape(outputs, [-1, self.cell.output_width])
        embedded = tf.reshape(inputs, [-1, inputs.shape[-1]])
        readout = cell.readout(flat, embedded, DropoutMasks.none())
        logits = tf.matmul(readout, self.projection_kernel) + self.projection_bias
        return tf.reshape(logits, [steps, rows, logits.shape[-1]])


def _unroll(cell: DecoderCell, inputs: tf.Tensor, state: Any, source: Any) -> tf.Tensor:
    """Runs the cell over prepared inputs `[T, B, I]`; returns outputs `[T, B, O]`."""
    steps = tf.shape(inputs)[0]
    words = tf.TensorArray(tf.float32, steps, element_shape=inputs.shape[1:]).unstack(inputs)
    outputs = tf.TensorArray(tf.float32, steps, element_shape=[None, cell.output_width])

    def body(time: tf.Tensor, state: Any, outputs: tf.TensorArray) -> tuple:
        out = cell.step(words.read(time), state, source)
        return time + 1, out.state, outputs.write(time, out.output)

    _, _, outputs = tf.while_loop(
        lambda time, *_: time < steps,
        body,
        (tf.constant(0), state, outputs),
        shape_invariants=(
            tf.TensorShape([]),
            tf.nest.map_structure(lambda s: tf.TensorShape([None, *s.shape[1:]]), state),
            tf.TensorShape(None),
        ),
        maximum_iterations=steps,
    )
    return outputs.stack()


class TrainStep:
    """Model, optimizer and the compiled update."""

    def __init__(self, hparams: HParams, cell: str, task: Task, jit_compile: bool = False):
        """Creates the weights and the optimizer's slots.

        Args:
          jit_compile: have XLA compile the update, which takes some five seconds for every length
            of input. These cells are so small that TensorFlow's time goes between operations.
        """
        self.hparams = hparams
        self.model = TaskModel(hparams, cell, task.output_width)
        self.variables = self.model.trainable_variables
        self.optimizer = make_optimizer(hparams)
        self.optimizer._create_all_weights(self.variables)
        inputs = tf.TensorSpec([None, None, task.input_width])
        targets = tf.TensorSpec([None, None, task.output_width])
        signature = [inputs, targets, tf.TensorSpec([None, None])]
        shapes = None if jit_compile else signature  # XLA compiles each length
        self.update = tf.function(
            self._update, input_signature=shapes, autograph=False, jit_compile=jit_compile
        )
        self.evaluate = tf.function(self._loss, input_signature=signature, autograph=False)

    def _loss(
        self, inputs: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Computes the cross-entropy, summed over bits, per sequence; and logits `[T, B, O]`."""
        logits = self.model.logits(inputs)
        bits = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
        rows = tf.cast(tf.shape(mask)[1], tf.float32)
        return tf.reduce_sum(bits * mask[..., None]) / rows, logits

    def _update(self, inputs: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss, _ = self._loss(inputs, targets, mask)
        gradients = tape.gradient(loss, self.variables)
        gradients, _ = tf.clip_by_global_norm(gradients, self.hparams.max_gradient_norm)
        self.optimizer.apply_gradients(zip(gradients, self.variables))
        return loss
