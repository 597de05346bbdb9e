"""Teacher-forced decoding, greedy search, sampling, beam search and forced scoring of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.cells import diagnostics
from tfmann.cells.base import Encoded, StepOutput, per_row, per_sentence
from tfmann.cells.noise import Noise
from tfmann.corpus.vocab import EOS_ID, SOS_ID
from tfmann.decoding import adapter, beam_decoder
from tfmann.decoding.adapter import swap_batch_and_time
from tfmann.decoding.beam import BLOCK, Search
from tfmann.decoding.constraints import UNCONSTRAINED, Constraints
from tfmann.models.seq2seq import Prepared, Seq2Seq


class Decoded(NamedTuple):
    """A decoding of given words; T is the greatest length."""

    outputs: tf.Tensor  # [T, B, O'], as the readout takes them
    embedded: tf.Tensor  # [T, B, E], the input words
    diagnostics: dict[str, tf.Tensor]  # by name [T, B, ...]
    raw: tf.Tensor  # [T, B, O], before the cell recalled other sentences


class Hypotheses(NamedTuple):
    """Translations of B sentences, n each, from best to worst."""

    ids: tf.Tensor  # [B, n, T] filled with </s>
    lengths: tf.Tensor  # [B, n], the first </s> counted
    scores: tf.Tensor  # [B, n]
    alignments: tf.Tensor | None  # [B, n, T, S] where they were asked for
    diagnostics: Mapping[str, tf.Tensor] | None = None  # [B, n, T, ...], what else was asked for


def limits(source_length: tf.Tensor, tgt_max_len_infer: int) -> tf.Tensor:
    """Steps a translation may take: the cap, or twice the source and 10 more.

    A sentence's limit is its own, so that no result depends on the sentences beside it.
    """
    if tgt_max_len_infer:
        return tf.fill(tf.shape(source_length), tgt_max_len_infer)
    return 2 * source_length + 10


def teacher_forced(
    model: Seq2Seq,
    prepared: Prepared,
    target_in: tf.Tensor,
    target_length: tf.Tensor,
    noise: Noise | None = None,
    dtype: tf.DType = tf.float32,
    record: tuple[str, ...] = (),
) -> Decoded:
    """Runs the decoder over given words.

    Args:
      model: the model.
      prepared: the source, made ready.
      target_in: ids `[B, T]`, beginning with `<s>`; T is the greatest length.
      target_length: `[B]`.
      noise: dropout of this update, or none.
      dtype: type of matrix products.
      record: diagnostics to record (`cells.diagnostics`).
    """
    noise = noise or Noise.none()
    embedded = model.embed_target(tf.transpose(target_in))
    inputs = model.cell.prepare_inputs(embedded, noise.scope("cell"), dtype)

    def step(inputs: tf.Tensor, state: Any) -> StepOutput:
        return model.cell.step(inputs, state, prepared.memory)

    of_steps = tuple(name for name in record if name not in model.cell.recalls)
    shapes = _diagnostics(step, inputs[0], prepared.state, of_steps)
    cell = adapter.BoundCell(step, prepared.state, model.cell.output_width, shapes)
    raw, seen = adapter.teacher_forced(
        cell, inputs, target_length, prepared.memory, model.hparams.decoder_backend
    )
    if not model.cell.recalls:
        return Decoded(raw, embedded, seen, raw)
    outputs, shown = model.cell.recall(swap_batch_and_time(raw), prepared.memory, seen=None)
    if of_steps not in (diagnostics.EVERYTHING, diagnostics.VECTORS):
        shown = {name: shown[name] for name in shown if name in record}
    seen = {**seen, **{name: swap_batch_and_time(value) for name, value in shown.items()}}
    return Decoded(swap_batch_and_time(outputs), embedded, seen, raw)


def _diagnostics(
    step: adapter.Step, inputs: tf.Tensor, state: Any, record: tuple[str, ...]
) -> Mapping[str, tf.Tensor]:
    """Tensors of the shapes that recorded diagnostics have, from a step whose result is unused."""
    if not record:
        return {}
    return diagnostics.select(step(inputs, state).diagnostics, record)


def forced_log_probs(
    model: Seq2Seq,
    prepared: Prepared,
    target_in: tf.Tensor,
    target_out: tf.Tensor,
    target_length: tf.Tensor,
    record: tuple[str, ...] = (),
) -> tuple[tf.Tensor, dict[str, tf.Tensor], tf.Tensor]:
    """Log-probabilities of given words.

    Returns:
      `[B, T]`, 0 at padding; diagnostics `[B, T, ...]`; `Decoded.raw`.
    """
    outputs, embedded, seen, raw = teacher_forced(
        model, prepared, target_in, target_length, record=record
    )
    steps, batch = tf.shape(outputs)[0], tf.shape(outputs)[1]
    flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
    words = tf.reshape(embedded[:steps], [-1, embedded.shape[-1]])
    log_probs = tf.nn.log_softmax(model.logits(flat, words))
    labels = tf.reshape(tf.transpose(target_out)[:steps], [-1])
    chosen = tf.gather(log_probs, labels, batch_dims=1)
    chosen = tf.transpose(tf.reshape(chosen, [steps, batch]))
    mask = tf.sequence_mask(target_length, steps, dtype=tf.float32)
    return chosen * mask, {name: swap_batch_and_time(value) for name, value in seen.items()}, raw


def _step_words(
    model: Seq2Seq,
    encoded: Encoded,
    memory: Any,
    dtype: tf.DType,
    project: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> adapter.Step:
    """The step of a search: ids `[B]` and state to a readout `[B, R]`, or to logits `[B, V]`."""

    def step(ids: tf.Tensor, state: Any) -> StepOutput:
        embedded = model.embed_target(ids)
        inputs = model.cell.prepare_inputs(embedded, Noise.none(), dtype)
        out = model.cell.step(inputs, state, memory)
        if model.cell.recalls:
            out = _recall(model, out, encoded, memory)
        readout = model.readout(out.output, embedded, dtype=dtype)
        return out._replace(output=project(readout) if project else readout)

    return step


def _recall(model: Seq2Seq, out: StepOutput, encoded: Encoded, memory: Any) -> StepOutput:
    """A step of all hypotheses beside what the cell remembers of other sentences."""
    outputs, shown = model.cell.recall(
        per_sentence(out.output, encoded.length), memory, seen=out.diagnostics
    )
    seen = {name: per_row(value) for name, value in shown.items()}
    return out._replace(output=per_row(outputs), diagnostics={**out.diagnostics, **seen})


def beam_search(
    model: Seq2Seq,
    prepared: Prepared,
    search: Search,
    tgt_max_len_infer: int = 0,
    with_alignments: bool = False,
    record: tuple[str, ...] = (),
    dtype: tf.DType = tf.float32,
) -> Hypotheses:
    """Beam search; returns the `search.best` best hypotheses of each sentence.

    `record` names diagnostics to return with them (`cells.diagnostics`); `dtype` is the type of
    matrix products, as it was for `prepared`.
    """
    length = prepared.encoded.length
    start = tf.fill(tf.shape(length), SOS_ID)
    attended = with_alignments or search.coverage_penalty_weight
    recorded = (*dict.fromkeys((*record, *(("alignments",) if attended else ()))),)

    def bind(sentences: tf.Tensor) -> adapter.Step:
        encoded = tf.nest.map_structure(lambda v: tf.gather(v, sentences), prepared.encoded)
        return _step_words(model, encoded, model.cell.prepare(encoded, dtype), dtype)

    first_step = _step_words(model, prepared.encoded, prepared.memory, dtype)
    problem = beam_decoder.Problem(
        bind=bind,
        project=model.projection(dtype, multiple_of=BLOCK),
        readout_width=model.cell.readout_width + model.cell.beside_width,
        vocabulary_size=model.target_size,
        state=prepared.state,
        limits=limits(length, tgt_max_len_infer),
        recorded=_diagnostics(first_step, start, prepared.state, recorded),
        backend=model.hparams.decoder_backend,
    )
    ids, lengths, scores, seen = beam_decoder.beam_search(
        problem, start, prepared.encoded.mask, search
    )
    alignments = seen["alignments"] if with_alignments else None
    shown = {name: seen[name] for name in record} or None
    return Hypotheses(ids, lengths, scores, alignments, shown)


def greedy(
    model: Seq2Seq,
    prepared: Prepared,
    tgt_max_len_infer: int = 0,
    with_alignments: bool = False,
    record: tuple[str, ...] = (),
    dtype: tf.DType = tf.float32,
    constraints: Constraints = UNCONSTRAINED,
) -> Hypotheses:
    """The most probable word at every step; `record`, `dtype` as in `beam_search`."""

    def choose(logits: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
        del time
        return tf.argmax(logits, axis=-1, output_type=tf.int32)

    asked = (tgt_max_len_infer, with_alignments, record, dtype, constraints)
    return _choose(model, prepared, choose, *asked)


def sample(
    model: Seq2Seq,
    prepared: Prepared,
    temperature: float,
    seed: tf.Tensor,
    tgt_max_len_infer: int = 0,
    with_alignments: bool = False,
    record: tuple[str, ...] = (),
    dtype: tf.DType = tf.float32,
    constraints: Constraints = UNCONSTRAINED,
) -> Hypotheses:
    """Draws every word from `softmax(logits / temperature)`; `seed` is an int32 pair."""

    def choose(logits: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
        now = tf.random.experimental.stateless_fold_in(seed, time)
        drawn = tf.random.stateless_categorical(logits / temperature, 1, now, dtype=tf.int32)
        return drawn[:, 0]

    asked = (tgt_max_len_infer, with_alignments, record, dtype, constraints)
    return _choose(model, prepared, choose, *asked)


def _choose(
    model: Seq2Seq,
    prepared: Prepared,
    choose: Any,
    tgt_max_len_infer: int,
    with_alignments: bool,
    record: tuple[str, ...],
    dtype: tf.DType,
    constraints: Constraints,
) -> Hypotheses:
    project = model.projection(dtype)
    step = _step_words(model, prepared.encoded, prepared.memory, dtype, project)
    length = prepared.encoded.length
    start = tf.fill(tf.shape(length), SOS_ID)
    names = (*dict.fromkeys((*record, *(("alignments",) if with_alignments else ()))),)
    recorded = _diagnostics(step, start, prepared.state, names)
    ids, lengths, log_probs, seen = adapter.choose_step_by_step(
        step,
        choose,
        prepared.state,
        start,
        limits(length, tgt_max_len_infer),
        recorded,
        constraints,
        model.hparams.decoder_backend,
    )
    real = tf.sequence_mask(lengths, tf.shape(ids)[1])
    ids = tf.where(real, ids, EOS_ID)
    scores = tf.reduce_sum(tf.where(real, log_probs, 0.0), axis=1)
    alignments = seen["alignments"][:, None] if with_alignments else None
    return Hypotheses(
        ids[:, None],
        lengths[:, None],
        scores[:, None],
        alignments,
        {name: seen[name][:, None] for name in record} or None,
    )
