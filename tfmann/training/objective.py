"""The loss: cross-entropy of the target words, summed, and what is added to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.cells.diagnostics import ADDRESSES
from tfmann.cells.noise import Noise
from tfmann.decoding import search
from tfmann.models import document
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training.cross_entropy import cross_entropy, projected_cross_entropy
from tfmann.training.sampled_softmax import draw


class Loss(NamedTuple):
    """Sums over a part of a batch; nothing is divided yet."""

    total: tf.Tensor  # what is minimised (with label smoothing)
    cross_entropy: tf.Tensor  # without smoothing, for perplexity
    words: tf.Tensor  # int32, target words with </s>
    kept: Any = ()  # what the model keeps for the documents' next sentences
    addresses: tuple[Mapping[str, tf.Tensor], ...] = ()  # of the target's steps and the source's


def sum_loss(
    model: Seq2Seq,
    batch: tuple,
    noise: Noise | None,
    dtype: tf.DType,
    around: Any = (),
    addresses: bool = False,
) -> Loss:
    """Sums over the words of a batch (`corpus.pipeline.Batch` up to `target_length`, as tensors).

    The projection to the vocabulary stands after the loop and at real positions only. `around` is
    what the sentences before left, as `Seq2Seq.prepare` takes it. `addresses` asks for those of all
    steps.
    """
    noise = noise or Noise.none()
    source, source_length, target_in, target_out, target_length = batch
    if document.keeps(model) and not around:
        around = document.nothing_kept(model, tf.shape(source)[0])
    looked_at = ADDRESSES if addresses else ()
    prepared = model.prepare(source, source_length, noise, dtype, looked_at, around)
    at_least_one = tf.maximum(target_length, 1)  # a replica may have a row without words
    weight = model.hparams.eos_attention_weight
    record = looked_at or (("alignments",) if weight else ())
    outputs, embedded, seen, raw = search.teacher_forced(
        model, prepared, target_in, at_least_one, noise, dtype, record
    )
    steps = tf.shape(outputs)[0]
    real = tf.where(tf.transpose(tf.sequence_mask(target_length, steps)))  # [M, 2] (t, b)
    readout = model.readout(
        tf.gather_nd(outputs, real), tf.gather_nd(embedded[:steps], real), noise, dtype
    )
    labels = tf.gather_nd(tf.transpose(target_out), real)
    total, plain = _of_words(model, readout, labels, noise, dtype)
    if weight:
        total += weight * eos_attention(seen["alignments"], source_length, target_length)
    kept: Any = ()
    if document.keeps(model):
        kept = document.keep(model, around, raw, target_out, target_length)
    return Loss(total, plain, tf.reduce_sum(target_length), kept, (seen, prepared.diagnostics))


def _of_words(
    model: Seq2Seq, readout: tf.Tensor, labels: tf.Tensor, noise: Noise, dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """The smoothed and the plain sum over `labels [M]`, from `readout [M, R]`."""
    kernel, bias = model.projection_kernel, model.projection_bias
    smoothing, size = model.hparams.label_smoothing, model.hparams.num_sampled_softmax
    if model.cell.beside_width:  # the distribution is more than a projection
        return cross_entropy(model.projection()(readout), labels, smoothing)
    if noise.training and 0 < size < kernel.shape[1]:
        sample = draw(labels, size, noise.uniform("sampled_softmax", kernel.shape[1:]))
        kernel, bias, labels = sample.projection(kernel, bias, labels)
    return projected_cross_entropy(readout, kernel, bias, labels, smoothing, dtype)


def eos_attention(
    alignments: tf.Tensor, source_length: tf.Tensor, target_length: tf.Tensor
) -> tf.Tensor:
    """`sum_t Att_eos(t)` over a batch (Meng et al. 2018, equations 17 and 19).

    The attention to the source's `</s>` at every step but the one that emits the target's, and 1
    minus it there.

    Args:
      alignments: `[T, B, S]`, of a cell with several rounds the last one's.
      source_length: `[B]`, `</s>` counted.
      target_length: `[B]`, `</s>` counted; 0 for a row without words.
    """
    last = tf.one_hot(source_length - 1, tf.shape(alignments)[2])  # [B, S]
    to_end = tf.einsum("tbs,bs->bt", alignments, last)
    steps = tf.shape(to_end)[1]
    final = tf.one_hot(target_length - 1, steps)  # all zero for a row without words
    real = tf.sequence_mask(target_length, steps, dtype=tf.float32)
    return tf.reduce_sum(final + (real - 2.0 * final) * to_end)
