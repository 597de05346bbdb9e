"""Encoders of the source sentences before this one (the systems that Tu et al. 2018 compare with).

Previous sentences are embedded by the encoder's own table: the parameter counts of Tu et al. 2018,
Table 5, leave no room for a second one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

import tensorflow as tf

from tfmann.cells.history import Previous, Summary
from tfmann.config import HParams
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.models.encoder import EncoderLayer, make_encoder


class History(NamedTuple):
    """The P source sentences that precede each of B sentences, the nearest one last."""

    ids: tf.Tensor  # [B, P, S'] int32
    length: tf.Tensor  # [B, P] int32, 0 where there is no such sentence


def signature(size: int) -> History:
    """Returns the shapes and types of histories of P = `size` sentences."""
    ids = tf.TensorSpec([None, size, None], tf.int32)
    return History(ids, tf.TensorSpec([None, size], tf.int32))


def nothing(rows: tf.Tensor) -> History:
    """Returns the history of B first sentences."""
    return History(tf.zeros([rows, 1, 1], tf.int32), tf.zeros([rows, 1], tf.int32))


class SummaryEncoder(tf.Module):
    """A sentence GRU over each sentence, a document GRU over its last states (Wang et al. 2017a).

    The document GRU's last state is d, the paper's D. (Both are LSTMs where the encoder is one.)
    """

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates both layers, U wide."""
        super().__init__(name="history")
        width, units = hparams.embedding_width, hparams.num_units
        self.sentence = EncoderLayer(hparams, width, 1, weights.scope("sentence"))
        self.document = EncoderLayer(hparams, units, 1, weights.scope("document"))

    def encode(
        self, embedded: tf.Tensor, length: tf.Tensor, masks: DropoutMasks, dtype: tf.DType
    ) -> tuple[Summary, tf.Tensor | None]:
        """Encodes words `[B, P, S', E]`, of which `length [B, P]` are real, to d.

        Returns:
          d; the first state of this sentence's encoder, which is d too.
        """
        last = self._sentences(embedded, length, masks.scope("sentence"), dtype)
        present = length > 0
        # missing sentences are skipped: the others move to the front
        order = tf.argsort(tf.cast(~present, tf.int32), axis=1, stable=True)
        states = tf.transpose(tf.gather(last, order, batch_dims=1), [1, 0, 2])  # [P, B, U]
        count = tf.math.count_nonzero(present, axis=1, dtype=tf.int32)
        _, finals = self.document.run(states, tf.maximum(count, 1), masks.scope("document"), dtype)
        vector = finals[0][0] * tf.cast(count > 0, tf.float32)[:, None]
        return Summary(vector), vector

    def _sentences(
        self, embedded: tf.Tensor, length: tf.Tensor, masks: DropoutMasks, dtype: tf.DType
    ) -> tf.Tensor:
        """Returns the last state of each sentence `[B, P, U]`, all in one loop.

        A missing sentence takes one step, so that every row has a last position; its state is
        not used.
        """
        rows, count, steps = tf.unstack(tf.shape(embedded)[:3])
        words = tf.reshape(embedded, [rows * count, steps, embedded.shape[-1]])
        lengths = tf.maximum(tf.reshape(length, [-1]), 1)
        _, finals = self.sentence.run(tf.transpose(words, [1, 0, 2]), lengths, masks, dtype)
        return tf.reshape(finals[0][0], [rows, count, finals[0][0].shape[-1]])


class PreviousEncoder(tf.Module):
    """A second encoder, like the first, over the previous sentence (Jean et al. 2017)."""

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates the encoder."""
        super().__init__(name="history")
        self.encoder = make_encoder(hparams, weights)

    def encode(
        self, embedded: tf.Tensor, length: tf.Tensor, masks: DropoutMasks, dtype: tf.DType
    ) -> tuple[Previous, tf.Tensor | None]:
        """Encodes words `[B, P, S', E]`, of which `length [B, P]` are real, to annotations.

        Returns:
          the last sentence's annotations; None: this sentence's encoder starts at zero.
        """
        words, length = embedded[:, -1], length[:, -1]
        encoded = self.encoder.encode(words, tf.maximum(length, 1), masks, dtype)
        mask = tf.sequence_mask(length, tf.shape(words)[1], dtype=tf.float32)
        return Previous(encoded.annotations * mask[:, :, None], mask), None


# By `CellSpec.history`.
ENCODERS: Mapping[str, Callable[[HParams, VariableFactory], Any]] = {
    "summary": SummaryEncoder,
    "annotations": PreviousEncoder,
}
