"""The sentence model: encoder, a decoder cell found by name, projection to the vocabulary."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann import hparams as hparams_module
from tfmann import size
from tfmann.cells.base import Encoded, MemoryCell
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import product
from tfmann.cells.weights import Weights
from tfmann.errors import UsageError
from tfmann.hparams import HParams
from tfmann.models import history
from tfmann.models.encoder import Encoder
from tfmann.models.reader import read_source

_IMPOSSIBLE = -1e9  # a logit; finite, so that 0 times it is a number


def compute_dtype(precision: str) -> tf.DType:
    """The type of matrix products, as a setting names it."""
    return tf.bfloat16 if precision == "mixed_bfloat16" else tf.float32


class Prepared(NamedTuple):
    """A source made ready for decoding: what is read, and the first state."""

    encoded: Encoded
    memory: Any
    state: Any
    diagnostics: dict[str, tf.Tensor]  # of reading the source, [S, B, ...], where recorded


def make_cell(hparams: HParams, annotation_width: int, weights: Weights) -> MemoryCell:
    """Builds the cell named `hparams.cell`: the one `MemoryCell` of the file that declares it."""
    module = importlib.import_module(hparams_module.cell_module(hparams.cell))
    classes = [
        value
        for value in vars(module).values()
        if getattr(value, "__module__", None) == module.__name__
        and isinstance(value, type)  # so is an imported alias such as tuple[int], up to Python 3.10
        and issubclass(value, MemoryCell)
    ]
    if len(classes) != 1:
        raise TypeError(f"{module.__name__} must define one MemoryCell, it has {len(classes)}")
    return classes[0](hparams, annotation_width, weights)


class Seq2Seq(tf.Module):
    """Source ids to a distribution over target ids.

    Attributes:
      compute_dtype: the type of matrix products in training; everything else is float32.
    """

    def __init__(self, hparams: HParams, source_size: int, target_size: int):
        """Creates all weights; the sizes are those of the vocabularies."""
        super().__init__(name="seq2seq")
        self.hparams = hparams
        weights = Weights(hparams, "model")
        width = hparams.embedding_width
        if hparams.share_vocab:
            self.source_embedding = weights.embedding("embedding", source_size, width)
            self.target_embedding = self.source_embedding
        else:
            self.source_embedding = weights.embedding("source_embedding", source_size, width)
            self.target_embedding = weights.embedding("target_embedding", target_size, width)
        self.encoder = None
        if hparams.encoder_type != "memory":
            self.encoder = Encoder(hparams, weights.scope("encoder"))
        annotation_width = self.encoder.annotation_width if self.encoder else 0
        self.cell = make_cell(hparams, annotation_width, weights.scope("cell"))
        size.require_on_device(
            self.cell.memory_numbers, "the memory of one sentence", "give a smaller memory"
        )
        self.history = None
        if self.cell.history_form:
            self.history = history.ENCODERS[self.cell.history_form](
                hparams, weights.scope("history")
            )
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
        self.compute_dtype = compute_dtype(hparams.precision)
        self.target_size = target_size

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
        noise: Noise | None = None,
        dtype: tf.DType = tf.float32,
        record: tuple[str, ...] = (),
        document: Any = (),
    ) -> Prepared:
        """Encodes ids `[B, S]` and lets the cell make ready.

        Without an encoder the cell itself reads the source; `record` then names the diagnostics
        to keep of that (`cells.diagnostics`). `document` is what the sentences before left, for
        cells that look at it: a `models.history.History` where the cell looks at their source, of
        which nothing at all is a history without any sentence.
        """
        noise = noise or Noise.none()
        embedded = tf.gather(self.source_embedding, source)
        initial = None
        if self.history is not None:
            before = document or history.nothing(tf.shape(source)[0])
            words = tf.gather(self.source_embedding, before.ids)
            document, initial = self.history.encode(
                words, before.length, noise.scope("history"), dtype
            )
        if self.encoder is not None:
            encoded = self.encoder.encode(
                embedded, length, noise.scope("encoder"), dtype, initial
            )
        else:
            mask = tf.sequence_mask(length, tf.shape(source)[1], dtype=tf.float32)
            encoded = Encoded(embedded[..., :0], mask, length, final_state=())
        encoded = encoded._replace(document=document)
        memory = self.cell.prepare(encoded, dtype)
        state, seen = self.cell.initial_state(encoded), {}
        if self.encoder is None:
            words = tf.transpose(embedded, [1, 0, 2])
            inputs = self.cell.prepare_inputs(words, noise.scope("source"), dtype)
            state, seen = read_source(self.cell, inputs, length, state, memory, record)
        return Prepared(encoded, memory, state, seen)

    def embed_target(self, ids: tf.Tensor) -> tf.Tensor:
        """Embeds target ids `[...]` to `[..., E]`."""
        return tf.gather(self.target_embedding, ids)

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise | None = None,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """Cell outputs `[M, O]` beside their input words `[M, E]` to what is projected."""
        noise = noise or Noise.none()
        return self.cell.readout(outputs, embedded, noise.scope("cell"), dtype)

    def projection(
        self, dtype: tf.DType = tf.float32, multiple_of: int = 1
    ) -> Callable[[tf.Tensor], tf.Tensor]:
        """What maps readouts `[M, R]`, with what they carry beside, to logits `[M, V]`.

        Made before a loop, it casts the kernel once. `multiple_of` rounds V up by words that are
        impossible.
        """
        kernel, bias = tf.cast(self.projection_kernel, dtype), self.projection_bias
        more = -self.target_size % multiple_of
        if more:
            kernel = tf.pad(kernel, [[0, 0], [0, more]])
            bias = tf.zeros([self.target_size]) if bias is None else bias
            bias = tf.pad(bias, [[0, more]], constant_values=_IMPOSSIBLE)

        def project(readout: tf.Tensor) -> tf.Tensor:
            logits = product(readout, kernel)
            return logits if bias is None else logits + bias

        return lambda readout: self.cell.distribution(readout, project)

    def logits(self, outputs: tf.Tensor, embedded: tf.Tensor) -> tf.Tensor:
        """Cell outputs `[M, O]` beside their input words `[M, E]` to `[M, V]`."""
        return self.projection()(self.readout(outputs, embedded))

    def count_parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(int(np.prod(v.shape)) for v in self.trainable_variables)
