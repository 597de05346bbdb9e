"""The cells that attend to a source, as a layer of Keras models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfmann import config
from tfmann.cells.base import DecoderCell, EncoderOutput
from tfmann.config import CELLS, HParams
from tfmann.config.cells import RNNSearchOptions, TransformerOptions
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.models import keras_settings
from tfmann.models.seq2seq import make_cell

# What the cells read in addition to their options in the registry.
_TRANSFORMER = (
    "num_units", "num_layers", "num_decoder_layers", "transformer_heads", "feed_forward_size",
    "tgt_max_len", "init_op", "init_weight", "random_seed",
)  # fmt: skip
_RNNSEARCH = ("num_units", "init_op", "init_weight", "recurrent_init_op", "random_seed")
_FOR_A_LOSS = "auxiliary_loss_weight"  # an option; but a KerasDecoder computes no loss


@tf.keras.utils.register_keras_serializable("tfmann")
class KerasDecoder(tf.keras.layers.Layer):
    """A decoder cell over given words and the annotations of a source.

        decoder = KerasDecoder("kvmematt", num_units=64, num_rounds=2)
        outputs = decoder([words, annotations])
        outputs, scores = decoder([words, annotations], return_attention_scores=True)
        outputs, *state = decoder([words, annotations], return_state=True)
        outputs, *state = decoder([more, annotations], initial_state=state, return_state=True)

    Words are `[B, T, E]`, annotations `[B, S, D]`, outputs `[B, T, U]` and scores `[B, T, S]`:
    the weights on the source in every step. The mask of the annotations, such as that of an
    `Embedding(mask_zero=True)`, says which positions are real, and so does that of the words.

    Attributes:
      cell: the decoder cell, once the layer is built; `cell.step` also returns its diagnostics.
    """

    cell: DecoderCell

    def __init__(
        self, cell_name: str, name: str | None = None, trainable: bool = True, **settings: Any
    ):
        """Checks the settings; the weights are made when the widths E and D are known.

        Args:
          cell_name: a cell that attends to a source and reads nothing else, such as "kvmematt".
          name: of the layer.
          trainable: whether its weights are.
          **settings: what the cell reads of the settings of `HParams` (`readable_settings`), such
            as `num_units`.

        Raises:
          UsageError: the cell is of another kind, or a setting is wrong or not read.
        """
        super().__init__(trainable, name, dtype="float32")
        if not _attends_only(cell_name):
            attending = ", ".join(sorted(filter(_attends_only, CELLS)))
            raise UsageError(
                f"KerasDecoder(): {cell_name!r} does not read a source alone: expected one of "
                f"{attending}"
            )
        readable = readable_settings(cell_name)
        keras_settings.require_readable(settings, readable, cell_name, where="KerasDecoder()")
        self._cell_name, self._settings = cell_name, settings
        self.input_spec = [tf.keras.layers.InputSpec(ndim=3)] * 2
        self._hparams(input_width=1)  # checks the values

    def _hparams(self, input_width: int) -> HParams:
        fixed = {"cell": self._cell_name, "embedding_size": input_width, "bridge": "zero"}
        return HParams(**{**keras_settings.DEFAULTS, **self._settings, **fixed})

    def build(self, input_shape: Sequence[tf.TensorShape]) -> None:
        """Makes the weights for the shapes of words and annotations."""
        shapes = [tf.TensorShape(shape) for shape in input_shape]
        widths = [shape[-1] for shape in shapes if shape.rank == 3]
        if len(shapes) != 2 or len(widths) != 2 or None in widths:
            raise UsageError(
                "KerasDecoder(): expected words [B, T, E] and annotations [B, S, D] with known "
                f"widths E and D, and they are {', '.join(map(str, shapes))}"
            )
        self.input_spec = [tf.keras.layers.InputSpec(ndim=3, axes={-1: width}) for width in widths]
        hparams = self._hparams(input_width=widths[0])
        self.cell = make_cell(hparams, widths[1], VariableFactory(hparams, "cell"))
        self.built = True

    def call(
        self,
        inputs: Sequence[tf.Tensor],
        mask: Sequence[tf.Tensor | None] | None = None,
        return_attention_scores: bool = False,
        initial_state: Sequence[tf.Tensor] | None = None,
        return_state: bool = False,
    ) -> Any:
        """Runs a step for each word.

        Args:
          inputs: words `[B, T, E]`, T at least 1, and annotations `[B, S, D]`.
          mask: of the words, `[B, T]` bool, and of the annotations, `[B, S]`; None: all are real.
            At padding among the words the state stays, and the last output is repeated.
          return_attention_scores: also return the attention `[B, T, S]`.
          initial_state: the state after the words before, of the same annotations and mask; None:
            there are none.
          return_state: also return the state after the last word, as Keras's recurrent layers do.

        Returns:
          outputs `[B, T, U]`, as they are projected to words; then, if they are wanted, the scores
          and each tensor of the state.
        """
        _require_masks_and_dense_inputs(inputs, mask)
        words, annotations = inputs
        cell, none = self.cell, DropoutMasks.none()
        real_words, real = mask or (None, None)
        places = None
        if real is not None:
            annotations, real, places = _real_first(annotations, real)
        encoded = _encoded(annotations, real)
        source, start = cell.prepare(encoded), cell.initial_state(encoded)

        def step(word: tf.Tensor, states: Sequence[tf.Tensor]) -> tuple[Any, list[tf.Tensor]]:
            state = tf.nest.pack_sequence_as(start, states)
            result = cell.step(cell.prepare_inputs(word, none), state, source)
            outputs = cell.readout(result.output, word, none)
            return (outputs, result.diagnostics["alignments"]), tf.nest.flatten(result.state)

        states = tf.nest.flatten(start)
        if initial_state is not None:
            states = _require_state(initial_state, states)
        if real_words is not None:
            real_words = tf.cast(real_words, tf.bool)
        _, (outputs, scores), states = tf.keras.backend.rnn(step, words, states, mask=real_words)
        if places is not None:
            scores = tf.gather(scores, places, axis=2, batch_dims=1)
        further = [scores] if return_attention_scores else []
        further += states if return_state else []
        return (outputs, *further) if further else outputs

    def compute_mask(self, inputs: Any, mask: Sequence[tf.Tensor | None] | None = None) -> Any:
        """Returns the mask of the words, which is that of the outputs."""
        del inputs
        return mask[0] if mask else None

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the layer, with which Keras saves and copies it."""
        layer = {"name": self.name, "trainable": self.trainable}
        return {"cell_name": self._cell_name, **layer, **self._settings}


def readable_settings(name: str) -> list[str]:
    """Returns the settings that `KerasDecoder` takes for the cell `name`."""
    options = config.cell_spec(name).options
    common: Sequence[str] = keras_settings.COMMON
    if issubclass(options, TransformerOptions):
        common = _TRANSFORMER
    elif issubclass(options, RNNSearchOptions):
        common = _RNNSEARCH
    return [*common, *(key for key in config.fields_of(options) if key != _FOR_A_LOSS)]


def _attends_only(name: str) -> bool:
    spec = config.cell_spec(name)
    return spec.has_alignments and not spec.reads_documents


def _require_masks_and_dense_inputs(inputs: Sequence[tf.Tensor], mask: Any) -> None:
    if mask is not None and not isinstance(mask, (list, tuple)):
        raise UsageError(
            "KerasDecoder(): expected mask=[None, mask of the annotations], and it is a tensor of "
            f"shape {mask.shape}"
        )
    if mask is not None and len(mask) != 2:
        raise UsageError(
            "KerasDecoder(): expected mask=[mask of the words, mask of the annotations], each of "
            f"them or None, and there are {len(mask)}"
        )
    for name, each, given in zip(("words", "annotations"), inputs, mask or ()):
        shape = getattr(given, "shape", each.shape[:2])  # a list is converted later
        if not each.shape[:2].is_compatible_with(shape):
            raise UsageError(
                f"KerasDecoder(): expected a mask of the {name} of shape {each.shape[:2]}, and it "
                f"has {tf.TensorShape(shape)}"
            )
    if inputs[0].shape[1] == 0:
        raise UsageError("KerasDecoder(): expected at least one word, and there is none")
    if any(isinstance(each, tf.RaggedTensor) for each in inputs):
        raise UsageError(
            "KerasDecoder(): expected dense words and annotations: pad a ragged tensor with "
            "to_tensor(), and give a mask"
        )


def _require_state(
    state: Sequence[tf.Tensor], expected: Sequence[tf.Tensor]
) -> Sequence[tf.Tensor]:
    state = [tf.convert_to_tensor(each) for each in state]
    compatible = (
        ours.shape.is_compatible_with(theirs.shape) for ours, theirs in zip(state, expected)
    )
    if len(state) != len(expected) or not all(compatible):
        raise UsageError(
            f"KerasDecoder(): expected initial_state with the {len(expected)} tensors that "
            "return_state=True returned after the outputs"
        )
    return state


def _real_first(annotations: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Moves padding to the end, where the cells expect it.

    Args:
      annotations: `[B, S, D]`.
      mask: `[B, S]`, true at real positions.

    Returns:
      annotations and mask in the new order, and the new place of every position `[B, S]`.
    """
    order = tf.argsort(1 - tf.cast(mask, tf.int32), axis=1, stable=True)
    annotations, mask = (tf.gather(each, order, batch_dims=1) for each in (annotations, mask))
    return annotations, mask, tf.argsort(order, axis=1)


def _encoded(annotations: tf.Tensor, mask: tf.Tensor | None) -> EncoderOutput:
    """Returns a source with zeros at padding; its encoder's final states are not used."""
    real = tf.ones(tf.shape(annotations)[:2]) if mask is None else tf.cast(mask, tf.float32)
    length = tf.cast(tf.maximum(tf.reduce_sum(real, axis=1), 1), tf.int32)  # cells divide by it
    return EncoderOutput(annotations * real[..., tf.newaxis], real, length, final_state=())
