"""Greedy search, sampling and beam search with a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.cells.contract import recorded_shapes
from tfmann.cells.document_memory import DocumentMemory
from tfmann.data.vocab import EOS_ID, SOS_ID
from tfmann.decoding import beam_decoder
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.bound_cell import StepFunction
from tfmann.decoding.ensemble import ALIGNMENTS, EnsembleCell, SearchModel
from tfmann.decoding.lexical_constraints import Phrases
from tfmann.decoding.next_words import BLOCK
from tfmann.decoding.restrictions import UNRESTRICTED, Restrictions
from tfmann.decoding.row_decoders import choose_step_by_step
from tfmann.decoding.sampling import SamplingOptions, draw
from tfmann.decoding.shortlist import Shortlist
from tfmann.decoding.target_prefix import extend_limits
from tfmann.layers.beams import merge_beams, split_beams
from tfmann.layers.dropout import DropoutMasks
from tfmann.memory import word_mixture
from tfmann.models.seq2seq import Prepared

READOUT = "readout"  # diagnostic of a step with a word proposer, from which caches are written


class SearchOptions(NamedTuple):
    """The options of every kind of search."""

    # steps of a translation; 0: twice the source and 10 more, or what the least length needs; more
    # where the prefix and the phrases need them
    max_length: int = 0
    with_alignments: bool = False  # return `Hypotheses.alignments`
    record: tuple[str, ...] = ()  # diagnostics to return (`cells.diagnostics`)
    dtype: tf.DType = tf.float32  # type of matrix products, as it was for the prepared source
    restrictions: Restrictions = UNRESTRICTED
    prefix: tf.Tensor | None = None  # [B, P] given first words of the translations
    phrases: Phrases | None = None  # that the translations contain; not of `sample`
    shortlist: Shortlist | None = None  # the words that they may have; None: all
    backend: str = ""  # of the loop over the steps; empty: the `decoder_backend` of the model

    def in_columns(self) -> SearchOptions:
        """Returns the same options with columns of the shortlist, if there is one, for ids."""
        if self.shortlist is None:
            return self
        prefix, phrases = self.prefix, self.phrases
        return self._replace(
            prefix=None if prefix is None else self.shortlist.columns(prefix),
            phrases=None if phrases is None else self.shortlist.phrases(phrases),
        )

    def projection(
        self, model: SearchModel, multiple_of: int = 1
    ) -> Callable[[tf.Tensor], tf.Tensor]:
        """Returns the map from the readouts of steps to logits, as `Seq2Seq.projection` does."""
        if self.shortlist is None:
            return model.projection(self.dtype, multiple_of)
        return self.shortlist.projection(model, self.dtype)

    def step_limits(self, source_length: tf.Tensor) -> tf.Tensor:
        """Returns the steps `[B]` that each translation may take, `</s>` counted.

        A sentence's limit depends on that sentence alone, so that no result depends on its batch.
        """
        if self.max_length:
            limits = tf.fill(tf.shape(source_length), self.max_length)
        else:
            limits = tf.maximum(2 * source_length + 10, self.restrictions.min_length + 1)
        return extend_limits(limits, self.prefix, self.phrases)

    def recorded_names(self, attention_is_used: bool = False) -> tuple[str, ...]:
        """Returns the diagnostics that the steps of a search record."""
        attends = self.with_alignments or attention_is_used
        return tuple(dict.fromkeys((*self.record, *((ALIGNMENTS,) if attends else ()))))


class Hypotheses(NamedTuple):
    """Translations of B sentences, n each, from best to worst."""

    ids: tf.Tensor  # [B, n, T] filled with </s>
    lengths: tf.Tensor  # [B, n], the first </s> counted
    scores: tf.Tensor  # [B, n]
    alignments: tf.Tensor | None  # [B, n, T, S] if `with_alignments`
    diagnostics: Mapping[str, tf.Tensor] | None = None  # [B, n, T, ...] of `record`


def beam_search(
    model: SearchModel,
    prepared: Prepared,
    beam: BeamOptions,
    options: SearchOptions = SearchOptions(),  # noqa: B008 (immutable)
    widths: tf.Tensor | None = None,
) -> Hypotheses:
    """Searches by beams; returns the `beam.num_best` best hypotheses of each sentence.

    With phrases, sentences may have beams of different `widths` `[B]`, at most `beam.beam_width`.
    """
    options = options.in_columns()
    length, shortlist = prepared.encoded.length, options.shortlist
    cell = model.compute_cell(options.dtype)
    start = tf.fill(tf.shape(length), SOS_ID)

    def bind(sentences: tf.Tensor) -> StepFunction:
        encoded = _of_sentences(prepared.encoded, sentences)
        lists = None if shortlist is None else shortlist.of_sentences(sentences)
        return step_words(model, cell, encoded, cell.prepare(encoded), shortlist=lists)

    first_step = step_words(model, cell, prepared.encoded, prepared.source, shortlist=shortlist)
    names = options.recorded_names(attention_is_used=bool(beam.coverage_penalty_weight))
    proposer = prepared.encoded.word_proposer
    limits = options.step_limits(length)
    problem = beam_decoder.BeamProblem(
        bind=bind,
        project=word_mixture.projection(options.projection(model, multiple_of=BLOCK), proposer),
        readout_width=model.readout_width + _extra_width(proposer, shortlist),
        vocabulary_size=model.target_size,
        state=prepared.state,
        limits=limits,
        recorded=recorded_shapes(first_step, start, prepared.state, names),
        restrictions=options.restrictions,
        backend=options.backend or model.hparams.decoder_backend,
        prefix=options.prefix,
        phrases=options.phrases,
        widths=widths,
    )
    ids, lengths, scores, diagnostics = beam_decoder.beam_search(
        problem, start, prepared.encoded.mask, beam
    )
    return _hypotheses(ids, lengths, scores, diagnostics, options)


def _of_sentences(encoded: Any, sentences: tf.Tensor) -> Any:
    """Returns the encodings of the sentences `[n]`, with what their word proposers read."""
    proposer = encoded.word_proposer
    if proposer:
        encoded = encoded._replace(word_proposer=())
    encoded = tf.nest.map_structure(lambda part: tf.gather(part, sentences), encoded)
    if proposer:
        encoded = encoded._replace(word_proposer=proposer.of_sentences(sentences))
    return encoded


def greedy(
    model: SearchModel,
    prepared: Prepared,
    options: SearchOptions = SearchOptions(),  # noqa: B008 (immutable)
    beam_width: int = 1,
) -> Hypotheses:
    """Takes the most probable word at every step: a beam search of width 1.

    With phrases of n tokens, different for each sentence, it is one of width n + 1: a hypothesis
    for each number of their tokens, as with a beam of 1 in the grid of Hokamp & Liu 2017
    (arXiv:1704.07138). So a sentence without phrases is translated as if no other had any.

    Args:
      model: the model.
      prepared: the sources.
      options: the search.
      beam_width: with phrases, the greatest n + 1 or more.
    """
    widths = None if options.phrases is None else options.phrases.total + 1
    return beam_search(model, prepared, BeamOptions(beam_width), options, widths)


def sample(
    model: SearchModel,
    prepared: Prepared,
    sampling: SamplingOptions,
    seed: tf.Tensor,
    options: SearchOptions = SearchOptions(),  # noqa: B008 (immutable)
) -> Hypotheses:
    """Draws every word from the model's distribution, truncated; `seed` is an int32 pair.

    Scores are log-probabilities under the model itself.
    """

    def choose(logits: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
        return draw(logits, sampling, tf.random.experimental.stateless_fold_in(seed, time))

    options = options.in_columns()
    project, cell = options.projection(model), model.compute_cell(options.dtype)
    step = step_words(
        model, cell, prepared.encoded, prepared.source, project, shortlist=options.shortlist
    )
    length = prepared.encoded.length
    start = tf.fill(tf.shape(length), SOS_ID)
    ids, lengths, log_probs, diagnostics = choose_step_by_step(
        step,
        choose,
        prepared.state,
        start,
        options.step_limits(length),
        recorded_shapes(step, start, prepared.state, options.recorded_names()),
        options.restrictions,
        options.backend or model.hparams.decoder_backend,
        options.prefix,
    )
    real = tf.sequence_mask(lengths, tf.shape(ids)[1])
    ids = tf.where(real, ids, EOS_ID)
    scores = tf.reduce_sum(tf.where(real, log_probs, 0.0), axis=1)
    ids, lengths, scores, diagnostics = tf.nest.map_structure(
        lambda value: value[:, None], (ids, lengths, scores, diagnostics)
    )
    return _hypotheses(ids, lengths, scores, diagnostics, options)


def _hypotheses(
    ids: tf.Tensor,
    lengths: tf.Tensor,
    scores: tf.Tensor,
    diagnostics: Mapping[str, tf.Tensor],
    options: SearchOptions,
) -> Hypotheses:
    """Returns the result of a search, with the diagnostics that the options name."""
    alignments = diagnostics[ALIGNMENTS] if options.with_alignments else None
    returned = {name: diagnostics[name] for name in options.record} or None
    if options.shortlist is not None:
        ids = options.shortlist.ids(ids)
    return Hypotheses(ids, lengths, scores, alignments, returned)


def _extra_width(proposer: Any, shortlist: Shortlist | None) -> int:
    """Returns what a step appends to its readout."""
    return word_mixture.extra_width(proposer) + (shortlist is not None)


def step_words(
    model: SearchModel,
    cell: DecoderCell | EnsembleCell,
    encoded: EncoderOutput,
    source: Any,
    project: Callable[[tf.Tensor], tf.Tensor] | None = None,
    shortlist: Shortlist | None = None,
) -> StepFunction:
    """Makes the step of a search: ids `[B]` and state to readout `[B, R]`, or to logits `[B, V]`.

    With a word proposer a readout is as `word_mixture.read` returns it; with a shortlist the ids
    are columns, and a readout is as `Shortlist.mark` returns it.
    """
    if project:
        project = word_mixture.projection(project, encoded.word_proposer)

    def step(ids: tf.Tensor, state: Any) -> StepOutput:
        embedded = model.embed_target(ids if shortlist is None else shortlist.ids(ids))
        inputs = cell.prepare_inputs(embedded, DropoutMasks.none())
        result = cell.step(inputs, state, source)
        if cell.document_memory:
            result = _read_memory(cell.document_memory, result, encoded, source)
        readout = cell.readout(result.output, embedded, DropoutMasks.none())
        if encoded.word_proposer:
            diagnostics = {**result.diagnostics, READOUT: readout}
            result = result._replace(diagnostics=diagnostics)
            grouped = split_beams(readout, encoded.length)
            readout = merge_beams(word_mixture.read(grouped, encoded.word_proposer))
        if shortlist is not None:
            readout = shortlist.mark(readout)
        return result._replace(output=project(readout) if project else readout)

    return step


def _read_memory(
    memory: DocumentMemory, result: StepOutput, encoded: EncoderOutput, source: Any
) -> StepOutput:
    """Combines the step of all hypotheses with what they read of the document memory."""
    grouped = split_beams(result.output, encoded.length)
    outputs, read = memory.read(grouped, source, result.diagnostics)
    diagnostics = {**result.diagnostics, **{name: merge_beams(v) for name, v in read.items()}}
    return result._replace(output=merge_beams(outputs), diagnostics=diagnostics)
