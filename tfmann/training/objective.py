"""The loss: the summed cross-entropy of the target words, and the terms added to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.cells.diagnostics import ADDRESSES
from tfmann.decoding.teacher_forcing import teacher_forced
from tfmann.layers.dropout import DropoutMasks
from tfmann.models import document_cache
from tfmann.models.seq2seq import Seq2Seq
from tfmann.ops.projected_cross_entropy import cross_entropy, projected_cross_entropy
from tfmann.training.sampled_softmax import draw


class Loss(NamedTuple):
    """Sums over a part of a batch, not yet divided by its size."""

    total: tf.Tensor  # to be minimised (with label smoothing)
    cross_entropy: tf.Tensor  # without smoothing, for perplexity
    words: tf.Tensor  # int32, target words with </s>
    cache: Any = ()  # after these sentences, of a model with a cache
    addresses: tuple[Mapping[str, tf.Tensor], ...] = ()  # of the target's steps and the source's


def sum_loss(
    model: Seq2Seq,
    batch: tuple,
    masks: DropoutMasks | None,
    dtype: tf.DType,
    document: Any = (),
    with_addresses: bool = False,
) -> Loss:
    """Sums the loss over the words of a batch.

    The projection to the vocabulary comes after the loop and is made at real positions only.

    Args:
      model: the model.
      batch: a `data.batching.Batch` up to `target_length`, as tensors.
      masks: of dropout in this update, or none.
      dtype: type of matrix products.
      document: the sentences before, as `Seq2Seq.prepare` takes them.
      with_addresses: return `Loss.addresses`.
    """
    masks = masks or DropoutMasks.none()
    source, source_length, target_in, target_out, target_length = batch
    if document_cache.has_memory(model) and not document:
        document = document_cache.empty(model, tf.shape(source)[0])
    addresses = ADDRESSES if with_addresses else ()
    prepared = model.prepare(source, source_length, masks, dtype, addresses, document)
    at_least_one = tf.maximum(target_length, 1)  # a replica may have a row without words
    weight = model.hparams.eos_attention_weight
    record = addresses or (("alignments",) if weight else ())
    outputs, embedded, diagnostics, raw = teacher_forced(
        model, prepared, target_in, at_least_one, masks, dtype, record
    )
    steps = tf.shape(outputs)[0]
    real = tf.where(tf.transpose(tf.sequence_mask(target_length, steps)))  # [M, 2] (t, b)
    readout = model.readout(
        tf.gather_nd(outputs, real), tf.gather_nd(embedded[:steps], real), masks, dtype
    )
    labels = tf.gather_nd(tf.transpose(target_out), real)
    total, plain = _word_losses(model, readout, labels, masks, dtype)
    if model.auxiliary_projections:
        total += _auxiliary_losses(model, tf.gather_nd(outputs, real), labels, dtype)
    if memory := model.cell.document_memory:
        total += memory.loss(readout, labels, model.own_projection())
    if weight:
        total += weight * eos_attention(diagnostics["alignments"], source_length, target_length)
    cache: Any = ()
    if document_cache.has_memory(model):
        cache = document_cache.write(model, document, raw, target_out, target_length)
    words = tf.reduce_sum(target_length)
    return Loss(total, plain, words, cache, (diagnostics, prepared.diagnostics))


def _word_losses(
    model: Seq2Seq, readout: tf.Tensor, labels: tf.Tensor, masks: DropoutMasks, dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the smoothed and the plain sum over `labels [M]`, from `readout [M, R]`."""
    kernel, bias = model.projection_kernel, model.projection_bias
    smoothing, size = model.hparams.label_smoothing, model.hparams.num_sampled_softmax
    if model.readout_width > model.cell.readout_width:  # more than a projection
        return cross_entropy(model.projection()(readout), labels, smoothing)
    if masks.training and 0 < size < kernel.shape[1]:
        sample = draw(labels, size, masks.uniform("sampled_softmax", kernel.shape[1:]))
        kernel, bias, labels = sample.projection(kernel, bias, labels)
    return projected_cross_entropy(readout, kernel, bias, labels, smoothing, dtype)


def _auxiliary_losses(
    model: Seq2Seq, outputs: tf.Tensor, labels: tf.Tensor, dtype: tf.DType
) -> tf.Tensor:
    """Sums the weighted losses of the cell's auxiliary predictions, from `outputs [M, O]`.

    They are over the whole vocabulary, even where that of the translation is sampled.
    """
    h, readouts = model.hparams, model.compute_cell(dtype).auxiliary
    assert readouts is not None, "the caller looks at auxiliary_projections"
    losses = [
        projected_cross_entropy(readout, *projection, labels, h.label_smoothing, dtype)[0]
        for readout, projection in zip(readouts(outputs), model.auxiliary_projections.values())
    ]
    return h.auxiliary_loss_weight * tf.add_n(losses)


def eos_attention(
    alignments: tf.Tensor, source_length: tf.Tensor, target_length: tf.Tensor
) -> tf.Tensor:
    """Computes `sum_t Att_eos(t)` over a batch (Meng et al. 2018, equations 17 to 19).

    Att_eos is the attention to the source's `</s>`, or 1 minus it at the step that emits the
    target's `</s>`.

    Args:
      alignments: `[T, B, S]`; of a cell with several rounds, those of the last.
      source_length: `[B]`, `</s>` counted.
      target_length: `[B]`, `</s>` counted; 0 for a row without words.
    """
    last = tf.one_hot(source_length - 1, tf.shape(alignments)[2])  # [B, S]
    to_end = tf.einsum("tbs,bs->bt", alignments, last)
    steps = tf.shape(to_end)[1]
    final = tf.one_hot(target_length - 1, steps)  # all zero for a row without words
    real = tf.sequence_mask(target_length, steps, dtype=tf.float32)
    return tf.reduce_sum(final + (real - 2.0 * final) * to_end)
