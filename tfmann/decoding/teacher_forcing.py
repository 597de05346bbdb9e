"""The decoder over given words: for the loss of training, and to score and trace translations.

It is here, and not in `training`, because it runs by the loop of the searches (`backend.decode`):
a hypothesis has the same score in a search and in a forced decoding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.cells import contract, diagnostics
from tfmann.cells.base import StepOutput
from tfmann.decoding.bound_cell import BoundCell
from tfmann.decoding.row_decoders import run_given_inputs, swap_batch_and_time
from tfmann.decoding.word_memory_entries import Votes
from tfmann.layers.compute_weights import compute_weights, with_weights
from tfmann.layers.dropout import DropoutMasks
from tfmann.memory import word_mixture
from tfmann.models.seq2seq import Prepared, Seq2Seq


class ForcedOutputs(NamedTuple):
    """The decoder's outputs at given words; T is the greatest length."""

    outputs: tf.Tensor  # [T, B, O'], as the readout takes them
    embedded: tf.Tensor  # [T, B, E], the input words
    diagnostics: dict[str, tf.Tensor]  # by name [T, B, ...]
    raw: tf.Tensor  # [T, B, O], before they read a document memory


def teacher_forced(
    model: Seq2Seq,
    prepared: Prepared,
    target_in: tf.Tensor,
    target_length: tf.Tensor,
    masks: DropoutMasks | None = None,
    dtype: tf.DType = tf.float32,
    record: tuple[str, ...] = (),
) -> ForcedOutputs:
    """Runs the decoder over given words.

    Args:
      model: the model.
      prepared: the prepared source.
      target_in: ids `[B, T]`, beginning with `<s>`; T is the greatest length.
      target_length: `[B]`.
      masks: of dropout in this update, or none.
      dtype: type of matrix products.
      record: diagnostics to record (`cells.diagnostics`).
    """
    masks = masks or DropoutMasks.none()
    embedded = model.embed_target(tf.transpose(target_in))
    weights = compute_weights(model.cell, dtype)
    bound = with_weights(model.cell, weights)
    inputs = bound.prepare_inputs(embedded, masks.scope("cell"))
    constants = (weights, prepared.source)

    def step(inputs: tf.Tensor, state: Any, constants: Any = constants) -> StepOutput:
        weights, source = constants
        result = with_weights(model.cell, weights).step(inputs, state, source)
        contract.require_alignments(model.hparams.cell, result)
        return result

    memory = bound.document_memory
    of_memory = memory.read_diagnostics if memory else ()
    of_steps = tuple(name for name in record if name not in of_memory)
    shapes = contract.recorded_shapes(step, inputs[0], prepared.state, of_steps)
    cell = BoundCell(step, prepared.state, model.cell.output_width, shapes)
    raw, recorded = run_given_inputs(
        cell, inputs, target_length, constants, model.hparams.decoder_backend
    )
    if memory is None:
        return ForcedOutputs(raw, embedded, recorded, raw)
    outputs, read = memory.read(swap_batch_and_time(raw), prepared.source, None)
    if of_steps not in (diagnostics.EVERYTHING, diagnostics.VECTORS):
        read = {name: read[name] for name in read if name in record}
    read = {name: swap_batch_and_time(value) for name, value in read.items()}
    return ForcedOutputs(swap_batch_and_time(outputs), embedded, {**recorded, **read}, raw)


def forced_log_probs(
    model: Seq2Seq,
    prepared: Prepared,
    target_in: tf.Tensor,
    target_out: tf.Tensor,
    target_length: tf.Tensor,
    record: tuple[str, ...] = (),
) -> tuple[tf.Tensor, dict[str, tf.Tensor], tf.Tensor]:
    """Computes log-probabilities of given words.

    Returns:
      `[B, T]`, 0 at padding; diagnostics `[B, T, ...]`, those of `word_memory_entries.Votes` among
      them if everything is recorded; `ForcedOutputs.raw`, or with a word proposer the readouts
      `[T, B, R]`.
    """
    outputs, embedded, recorded, raw = teacher_forced(
        model, prepared, target_in, target_length, record=record
    )
    steps, batch = tf.shape(outputs)[0], tf.shape(outputs)[1]
    flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
    words = tf.reshape(embedded[:steps], [-1, embedded.shape[-1]])
    readouts, proposer = model.readout(flat, words), prepared.encoded.word_proposer
    project = word_mixture.projection(model.projection(), proposer)
    if proposer:
        raw = tf.reshape(readouts, [steps, batch, model.readout_width])
        grouped = word_mixture.read(swap_batch_and_time(raw), proposer)
        width = model.readout_width + word_mixture.extra_width(proposer)
        readouts = tf.reshape(swap_batch_and_time(grouped), [-1, width])
    log_probs = tf.nn.log_softmax(project(readouts))
    labels = tf.reshape(tf.transpose(target_out)[:steps], [-1])
    chosen = tf.gather(log_probs, labels, batch_dims=1)
    chosen = tf.transpose(tf.reshape(chosen, [steps, batch]))
    mask = tf.sequence_mask(target_length, steps, dtype=tf.float32)
    by_batch = {name: swap_batch_and_time(value) for name, value in recorded.items()}
    if proposer and record == diagnostics.EVERYTHING:
        by_batch.update(_votes(model, proposer, swap_batch_and_time(raw), target_out[:, :steps]))
    return chosen * mask, by_batch, raw


def _votes(
    model: Seq2Seq, proposer: word_mixture.WordProposer, readouts: tf.Tensor, labels: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Returns what a word memory proposes at readouts `[B, T, R]` of the words `[B, T]`."""
    proposals = proposer.propose(readouts)
    rows = tf.reshape(readouts, [-1, model.readout_width])
    log_probs = tf.nn.log_softmax(model.projection()(rows))
    of_words = tf.gather(log_probs, tf.reshape(labels, [-1]), batch_dims=1)
    votes = Votes(
        share=tf.sigmoid(proposals.gates[..., 0]),
        model=tf.exp(tf.reshape(of_words, tf.shape(labels))),
        weights=proposals.shares,
        words=proposals.words,
        places=proposer.places(readouts),
    )
    return votes.as_diagnostics()
