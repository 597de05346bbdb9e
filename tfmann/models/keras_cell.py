"""The memory cells in Keras models of any kind, not only in translation."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfmann import config
from tfmann.cells.base import DecoderCell, EncoderOutput
from tfmann.config import HParams
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.models import keras_settings
from tfmann.models.seq2seq import make_cell

_DROPOUT = "dnc_bypass_dropout"  # an option; but a KerasCell drops nothing


@tf.keras.utils.register_keras_serializable("tfmann")
class KerasCell(tf.keras.layers.AbstractRNNCell):
    """A cell with a memory and its output layer, for `tf.keras.layers.RNN`.

    Inputs are `[B, E]` per step, outputs `[B, U]`. Every sequence starts with the memory's initial
    content, as in a pure MANN (Collier & Beel 2019, section 3.3).

    Attributes:
      cell: the decoder cell; `cell.step` also returns its diagnostics.
    """

    def __init__(self, cell: DecoderCell):
        """Wraps a decoder cell that works without an encoder."""
        super().__init__(name=cell.hparams.cell)
        self.cell = cell
        self._state_size = cell.state_size

    @property
    def state_size(self) -> Any:
        """The shapes of the state, without the batch."""
        return self._state_size

    @property
    def output_size(self) -> int:
        """U, the width of an output."""
        return self.cell.readout_width

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` takes, with which Keras saves and copies layers.

        Raises:
          UsageError: the cell is of a class that `from_config` would not make.
        """
        hparams = self.cell.hparams
        spec = config.cell_spec(hparams.cell)
        made = type(self.cell)
        if (made.__module__, made.__name__) != (f"tfmann.cells.{spec.module}", spec.class_name):
            raise UsageError(
                f"{made.__name__} cannot be saved or copied: by its settings it is the "
                f"cell {hparams.cell!r}, which would be built as {spec.class_name}. Register the "
                "class in tfmann/config/cells.py to save it"
            )
        settings = {key: getattr(hparams, key) for key in readable_settings(hparams.cell)}
        layer = {"name": hparams.cell, "trainable": self.trainable}
        return {**layer, "input_width": hparams.embedding_size, **settings}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> KerasCell:
        """Builds the same cell, with its start weights."""
        settings = dict(config)
        trainable = settings.pop("trainable", True)  # older files have none
        cell = keras_cell(**settings)
        cell.trainable = trainable
        return cell

    def get_initial_state(
        self, inputs: tf.Tensor | None = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """Returns the state before the first step of B sequences."""
        del dtype  # the state is float32
        return self.cell.initial_state(
            no_source(tf.shape(inputs)[0] if inputs is not None else batch_size)
        )

    def call(self, inputs: tf.Tensor, states: Any) -> tuple[tf.Tensor, Any]:
        """Runs one step: inputs `[B, E]` to outputs `[B, U]`, and the new state."""
        cell, none = self.cell, DropoutMasks.none()
        state = tf.nest.pack_sequence_as(self._state_size, tf.nest.flatten(states))
        source = cell.prepare(no_source(tf.shape(inputs)[0]))
        result = cell.step(cell.prepare_inputs(inputs, none), state, source)
        outputs = cell.readout(result.output, inputs, none)
        return outputs, tf.nest.pack_sequence_as(states, tf.nest.flatten(result.state))


def keras_cell(name: str, input_width: int, **settings: Any) -> KerasCell:
    """Builds a cell with a memory for `tf.keras.layers.RNN`.

        cell = keras_cell("ntm", input_width=8, num_units=100, num_memory_locations=64,
                          memory_unit_size=20)
        layer = tf.keras.layers.RNN(cell, return_sequences=True)

    Args:
      name: a cell that works without an encoder: "ntm" or "dnc".
      input_width: E, the width of an input.
      **settings: what the cell reads of the settings of `HParams` (`readable_settings`), such as
        `num_units` (the width U of the controller and of an output), `num_layers` or `read_heads`.

    Raises:
      UsageError: the cell needs an encoder's annotations, or a setting is wrong or not read.
    """
    if config.cell_spec(name).has_alignments:
        others = [repr(cell) for cell, spec in config.CELLS.items() if not spec.has_alignments]
        raise UsageError(
            f"the cell {name!r} attends to an encoder's annotations: expected a cell that works "
            f"without an encoder, {' or '.join(others)}; for others see KerasDecoder"
        )
    keras_settings.require_readable(settings, readable_settings(name), name, "keras_cell()")
    if not isinstance(input_width, int) or isinstance(input_width, bool):
        raise UsageError(f"keras_cell(): input_width: expected int, got {input_width!r}")
    if input_width < 1:
        raise UsageError(f"keras_cell(): input_width={input_width} is below the least value 1")
    fixed = {"cell": name, "embedding_size": input_width, "encoder_type": "memory"}
    hparams = HParams(**{**keras_settings.DEFAULTS, **settings, **fixed})
    return KerasCell(make_cell(hparams, 0, VariableFactory(hparams, "cell")))


def readable_settings(name: str) -> list[str]:
    """Returns the settings that `keras_cell` takes for the cell `name`."""
    options = config.fields_of(config.cell_spec(name).options)
    return [*keras_settings.COMMON, *(key for key in options if key != _DROPOUT)]


def no_source(batch_size: tf.Tensor | int) -> EncoderOutput:
    """Returns the output of an encoder that has read nothing, for B sequences."""
    return EncoderOutput(
        annotations=tf.zeros([batch_size, 1, 0]),
        mask=tf.zeros([batch_size, 1]),
        length=tf.zeros([batch_size], tf.int32),
        final_state=(),
    )
