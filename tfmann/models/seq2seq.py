"""The sentence model: encoder, a decoder cell from the registry, projection to the vocabulary."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann import config
from tfmann.cells import contract
from tfmann.cells.base import DecoderCell, EncoderOutput
from tfmann.config import HParams
from tfmann.errors import UsageError
from tfmann.layers.compute_weights import compute_weights, with_weights
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product
from tfmann.memory.word_mixture import DocumentAndProposer
from tfmann.models import history_encoder
from tfmann.models.encoder import make_encoder
from tfmann.models.source_reader import read_source
from tfmann.utils import memory_limits

# The shapes and types of ids and lengths, and of a `data.batching.Batch` up to `target_length`.
IDS, LENGTHS = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)
BATCH_SIGNATURE = (IDS, LENGTHS, IDS, IDS, LENGTHS)

_IMPOSSIBLE = -1e9  # a logit; finite, so that 0 times it is a number


def compute_dtype(precision: str) -> tf.DType:
    """Returns the type of matrix products that a setting names."""
    return tf.bfloat16 if precision == "mixed_bfloat16" else tf.float32


class Prepared(NamedTuple):
    """A source prepared for decoding, and the first state."""

    encoded: EncoderOutput
    source: Any  # inputs of every step, from `DecoderCell.prepare`
    state: Any
    diagnostics: dict[str, tf.Tensor]  # of reading the source, [S, B, ...], where recorded


class Projection(NamedTuple):
    """A projection of readouts to the vocabulary."""

    kernel: tf.Variable  # [R, V]
    bias: tf.Variable | None  # [V]


def make_cell(hparams: HParams, annotation_width: int, weights: VariableFactory) -> DecoderCell:
    """Builds the cell that `hparams.cell` names, of the class that its registry entry names.

    Raises:
      TypeError: the entry names no cell, or the cell does not say how wide its output is.
    """
    cell = _cell_class(hparams.cell)(hparams, annotation_width, weights)
    for name in ("output_width", "readout_width"):
        if not isinstance(getattr(cell, name, None), int):
            raise TypeError(f"{type(cell).__name__}.__init__ has to set self.{name}, a number")
    return cell


def _cell_class(name: str) -> type[DecoderCell]:
    spec, cells = config.cell_spec(name), "tfmann.cells"
    entry = f"the entry {name!r} of CELLS in config/cells.py"
    try:
        module = importlib.import_module(f"{cells}.{spec.module}")
    except ModuleNotFoundError as error:
        if error.name != f"{cells}.{spec.module}":
            raise
        raise TypeError(f"{entry}: there is no module {error.name}") from None
    found = getattr(module, spec.class_name, None)
    if not (isinstance(found, type) and issubclass(found, DecoderCell)):
        raise TypeError(f"{entry}: {module.__name__} has no DecoderCell {spec.class_name!r}")
    return found


class Seq2Seq(tf.Module):
    """Source ids to a distribution over target ids.

    Attributes:
      auxiliary_projections: of the cell's `auxiliary` readouts, by name; for training alone.
      compute_dtype: the type of matrix products in training; everything else is float32.
    """

    def __init__(self, hparams: HParams, source_size: int, target_size: int):
        """Creates all weights; the sizes are those of the vocabularies."""
        super().__init__(name="seq2seq")
        self.hparams, self.target_size = hparams, target_size
        weights = VariableFactory(hparams, "model")
        width = hparams.embedding_width
        if hparams.share_vocab:
            self.source_embedding = weights.embedding("embedding", source_size, width)
            self.target_embedding = self.source_embedding
        else:
            self.source_embedding = weights.embedding("source_embedding", source_size, width)
            self.target_embedding = weights.embedding("target_embedding", target_size, width)
        self.encoder = None
        if hparams.encoder_type != "memory":
            self.encoder = make_encoder(hparams, weights.scope("encoder"))
        annotation_width = self.encoder.annotation_width if self.encoder else 0
        self.cell = make_cell(hparams, annotation_width, weights.scope("cell"))
        memory_limits.require_without_gpu(
            self.cell.memory_numbers, "the memory of one sentence", "give a smaller memory"
        )
        self.history = None
        history = config.cell_spec(hparams.cell).history
        if history:
            self.history = history_encoder.ENCODERS[history](hparams, weights.scope("history"))
        self._projection_kernel = None
        if hparams.tie_output_embedding:
            self._require_width_of_embedding()
        else:
            self._projection_kernel = weights.matrix(
                "projection_kernel", [self.cell.readout_width, target_size]
            )
        self.projection_bias = None
        if hparams.projection_bias:
            self.projection_bias = weights.constant("projection_bias", np.zeros(target_size))
        auxiliary = self.cell.auxiliary
        self.auxiliary_projections = {
            name: self._make_projection(weights, name)
            for name in (auxiliary.names if auxiliary else ())
        }
        self.compute_dtype = compute_dtype(hparams.precision)

    def _make_projection(self, weights: VariableFactory, name: str) -> Projection:
        """Creates a projection from readouts, of the name `NAME_projection`."""
        shape = [self.cell.readout_width, self.target_size]
        kernel = weights.matrix(f"{name}_projection_kernel", shape)
        bias = None
        if self.hparams.projection_bias:
            bias = weights.constant(f"{name}_projection_bias", np.zeros(shape[1]))
        return Projection(kernel, bias)

    @property
    def projection_kernel(self) -> tf.Tensor:
        """From readouts to logits, `[readout_width, V]`; tied, it is the embeddings transposed."""
        if self._projection_kernel is None:
            return tf.transpose(self.target_embedding)
        return self._projection_kernel

    def _require_width_of_embedding(self) -> None:
        readout, embedding = self.cell.readout_width, self.hparams.embedding_width
        if readout != embedding:
            raise UsageError(
                f"tie_output_embedding projects with the target embedding: its width {embedding} "
                f"has to be that of the readout, which is {readout} here (embedding_size, "
                "num_units, readout_size)"
            )

    def prepare(
        self,
        source: tf.Tensor,
        length: tf.Tensor,
        masks: DropoutMasks | None = None,
        dtype: tf.DType = tf.float32,
        record: tuple[str, ...] = (),
        document: Any = (),
    ) -> Prepared:
        """Encodes ids `[B, S]` and prepares the cell.

        Without an encoder the cell itself reads the source; `record` then names the diagnostics
        to return (`cells.diagnostics`). `document` is the context of earlier sentences, for cells
        that use it: a cache, or a `history_encoder.History` of their sources, where () means
        a history without sentences. Either may be in a `DocumentAndProposer`.
        """
        masks = masks or DropoutMasks.none()
        embedded = tf.gather(self.source_embedding, source)
        initial = None
        proposer: Any = ()
        if isinstance(document, DocumentAndProposer):
            document, proposer = document
        if self.history is not None:
            before = document or history_encoder.nothing(tf.shape(source)[0])
            words = tf.gather(self.source_embedding, before.ids)
            document, initial = self.history.encode(
                words, before.length, masks.scope("history"), dtype
            )
        if self.encoder is not None:
            encoded = self.encoder.encode(embedded, length, masks.scope("encoder"), dtype, initial)
        else:
            mask = tf.sequence_mask(length, tf.shape(source)[1], dtype=tf.float32)
            encoded = EncoderOutput(embedded[..., :0], mask, length, final_state=())
        encoded = encoded._replace(document=document, word_proposer=proposer)
        weights = compute_weights(self.cell, dtype)
        cell = with_weights(self.cell, weights)
        constants = cell.prepare(encoded)
        state, diagnostics = self.cell.initial_state(encoded), {}  # in float32
        contract.require_state(state)
        if self.encoder is None:
            words = tf.transpose(embedded, [1, 0, 2])
            inputs = cell.prepare_inputs(words, masks.scope("source"))
            state, diagnostics = read_source(
                self.cell, weights, inputs, length, state, constants, record
            )
        return Prepared(encoded, constants, state, diagnostics)

    @property
    def readout_width(self) -> int:
        """The width of readouts, with what a document memory appends for its distribution."""
        memory = self.cell.document_memory
        return self.cell.readout_width + (memory.extra_width if memory else 0)

    def compute_cell(self, dtype: tf.DType) -> DecoderCell:
        """Returns the cell with its weights read once, and kernels as `dtype`."""
        return with_weights(self.cell, compute_weights(self.cell, dtype))

    def embed_target(self, ids: tf.Tensor) -> tf.Tensor:
        """Embeds target ids `[...]` to `[..., E]`."""
        return tf.gather(self.target_embedding, ids)

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        masks: DropoutMasks | None = None,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """Maps cell outputs `[M, O]` and their input words `[M, E]` to what is projected."""
        masks = masks or DropoutMasks.none()
        mapped = self.compute_cell(dtype).readout(outputs, embedded, masks.scope("cell"))
        contract.require_width("readout", mapped, self.readout_width)
        return mapped

    def projection(
        self, dtype: tf.DType = tf.float32, multiple_of: int = 1, words: tf.Tensor | None = None
    ) -> Callable[..., tf.Tensor]:
        """Returns the map from readouts `[M, R]`, and their extra features, to logits `[M, V]`.

        The kernel is cast once, so the map is made before a loop. `multiple_of` rounds V up by
        adding impossible words. With `words`, ids `[C]`, the map is to the logits `[M, C]` of these
        words; its second argument, `[M, C]`, tells which of them a row may have: others are -inf.
        """
        project = self.own_projection(dtype, multiple_of, words)
        memory = self.cell.document_memory
        if memory is None or words is not None:
            return project
        return lambda readout: memory.distribution(readout, project)

    def own_projection(
        self, dtype: tf.DType = tf.float32, multiple_of: int = 1, words: tf.Tensor | None = None
    ) -> Callable[..., tf.Tensor]:
        """Returns `projection` without what a document memory mixes into the distribution."""
        kernel, bias = tf.cast(self._columns(words), dtype), self.projection_bias
        if words is not None and bias is not None:
            bias = tf.gather(bias, words)
        padding = -self.target_size % multiple_of if words is None else 0
        if padding:
            kernel = tf.pad(kernel, [[0, 0], [0, padding]])
            bias = tf.zeros([self.target_size]) if bias is None else bias
            bias = tf.pad(bias, [[0, padding]], constant_values=_IMPOSSIBLE)

        def project(readout: tf.Tensor, is_allowed: tf.Tensor | None = None) -> tf.Tensor:
            logits = product(readout, kernel)
            logits = logits if bias is None else logits + bias
            return logits if is_allowed is None else tf.where(is_allowed, logits, -float("inf"))

        return project

    def _columns(self, words: tf.Tensor | None) -> tf.Tensor:
        """Returns the kernel of the projection to some words, or to all, `[readout_width, C]`."""
        if words is None:
            return self.projection_kernel
        if self._projection_kernel is None:
            return tf.transpose(tf.gather(self.target_embedding, words))
        return tf.gather(self._projection_kernel, words, axis=1)

    def count_parameters(self) -> int:
        """Counts the trainable numbers."""
        return sum(int(np.prod(v.shape)) for v in self.trainable_variables)
