"""The readouts of a model at every word of given pairs: the keys of a datastore."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfmann.data.batching import chunks, pad_pairs
from tfmann.decoding.teacher_forcing import teacher_forced
from tfmann.models.seq2seq import IDS, LENGTHS, Prepared, Seq2Seq
from tfmann.ops.gradients import without_gradients

IdPair = tuple[list[int], list[int]]  # of source and target, without `</s>`


class ForcedReadouts:
    """A model that decodes given pairs, without dropout, in float32 and outside any document."""

    def __init__(self, model: Seq2Seq, batch_size: int, append_source_eos: bool):
        """Compiles nothing yet; pairs are decoded `batch_size` at a time."""
        self._model, self._batch_size, self._append_eos = model, batch_size, append_source_eos
        self._run = tf.function(
            without_gradients(self._compute),
            autograph=False,
            input_signature=[IDS, LENGTHS, IDS, LENGTHS],
        )

    def is_like(self, other: ForcedReadouts) -> bool:
        """Returns whether both decode alike: the same model, as many pairs at a time."""
        return self._model is other._model and self._batch_size == other._batch_size

    def of_pairs(self, pairs: Sequence[IdPair]) -> list[np.ndarray]:
        """Returns for each pair the readouts `[T, R]` from which its words and `</s>` follow."""
        readouts: list[np.ndarray] = [np.zeros([0, 0])] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
        for numbers in chunks(order, self._batch_size):
            sources, targets = zip(*(pairs[i] for i in numbers))
            *inputs, _, lengths = pad_pairs(sources, targets, self._append_eos)
            result = self._run(*inputs, lengths).numpy()
            for row, number in enumerate(numbers):
                readouts[number] = result[row, : lengths[row]]
        return readouts

    def _compute(
        self,
        source: tf.Tensor,
        source_length: tf.Tensor,
        target_in: tf.Tensor,
        target_length: tf.Tensor,
    ) -> tf.Tensor:
        """Returns readouts `[B, T, R]`."""
        prepared = self._model.prepare(source, source_length)
        return forced_readouts(self._model, prepared, target_in, target_length)


def forced_readouts(
    model: Seq2Seq, prepared: Prepared, target_in: tf.Tensor, target_length: tf.Tensor
) -> tf.Tensor:
    """Decodes given words `[B, T]` that begin with `<s>`; returns the readouts `[B, T, R]`."""
    forced = teacher_forced(model, prepared, target_in, target_length)
    steps, batch = tf.shape(forced.outputs)[0], tf.shape(forced.outputs)[1]
    outputs = tf.reshape(forced.outputs, [-1, forced.outputs.shape[-1]])
    embedded = tf.reshape(forced.embedded[:steps], [-1, forced.embedded.shape[-1]])
    readouts = model.readout(outputs, embedded)
    by_time = tf.reshape(readouts, [steps, batch, model.readout_width])
    return tf.transpose(by_time, [1, 0, 2])


def weights_digest(model: Seq2Seq) -> str:
    """Returns the SHA-256 of a model's weights, names included."""
    digest = hashlib.sha256()
    for variable in sorted(model.trainable_variables, key=lambda v: v.name):
        digest.update(variable.name.encode())
        digest.update(np.ascontiguousarray(variable.numpy()).tobytes())
    return digest.hexdigest()
