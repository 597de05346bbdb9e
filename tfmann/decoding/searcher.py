"""A model's search by its settings: beams, the most probable words, or samples."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfmann.config import HParams
from tfmann.decoding import search
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.ensemble import SearchModel
from tfmann.decoding.lexical_constraints import Phrases
from tfmann.decoding.restrictions import Restrictions
from tfmann.decoding.sampling import SamplingOptions
from tfmann.decoding.search import Hypotheses, SearchOptions
from tfmann.decoding.shortlist import Shortlist
from tfmann.models.seq2seq import Prepared, compute_dtype
from tfmann.utils import memory_limits


class Searcher:
    """A model, or an ensemble, and the settings of its search."""

    def __init__(self, model: SearchModel, hparams: HParams):
        """Searches with `model` as the `infer_` settings of `hparams` say."""
        self.model, self.hparams = model, hparams

    def hypotheses(self, phrase_tokens: int = 0) -> int:
        """Returns the hypotheses of a sentence, if phrases have up to `phrase_tokens` tokens.

        In greedy search it is a power of 4, so that few programs are compiled.
        """
        h = self.hparams
        widths = {"beam_search": h.beam_width, "sample": h.num_translations_per_input}
        return widths.get(h.infer_mode, 4 ** ((phrase_tokens.bit_length() + 1) // 2))

    def require_room(self, sentences: int, width: int, positions: int = 1) -> None:
        """Raises UsageError if `width` hypotheses of `sentences` do not fit into memory.

        Args:
          sentences: their number.
          width: hypotheses of each.
          positions: tokens of the longest source; some cells have numbers for each in their states.
        """
        cell = self.model.cell
        rows = min(sentences, self.hparams.infer_batch_size)
        smaller = {
            "beam_search": "infer_batch_size, beam_width or memory",
            "sample": "infer_batch_size, num_translations_per_input or memory",
            "greedy": "infer_batch_size or memory" + (", or shorter phrases" if width > 1 else ""),
        }
        numbers = max(cell.memory_numbers, cell.state_numbers(positions))
        memory_limits.require_without_gpu(
            rows * width * (self.model.target_size + numbers),
            f"a search for {rows} sentences with {width} hypotheses each",
            f"give a smaller {smaller[self.hparams.infer_mode]}",
        )

    def search(
        self,
        source: tf.Tensor,
        length: tf.Tensor,
        document: Any,
        with_attention: bool,
        record: tuple[str, ...] = (),
        prefix: tf.Tensor | None = None,
        phrases: Phrases | None = None,
        shortlist: Shortlist | None = None,
        width: int = 1,
    ) -> tuple[Prepared, Hypotheses]:
        """Searches for the translations of encoded sentences.

        Args:
          source: ids `[B, S]`.
          length: `[B]`.
          document: the sentences before, as `Seq2Seq.prepare` takes them.
          with_attention: return the alignments of the hypotheses.
          record: diagnostics to return with them.
          prefix: `[B, P]` first words that the hypotheses must have (`target_prefix`).
          phrases: what the hypotheses must contain; not of samples.
          shortlist: the words that they may have.
          width: `hypotheses` of the tokens of `phrases`.

        Returns:
          the prepared sources, and the hypotheses.
        """
        h = self.hparams
        options = SearchOptions(
            max_length=h.tgt_max_len_infer,
            with_alignments=with_attention,
            record=record,
            dtype=compute_dtype(h.infer_precision),
            restrictions=Restrictions(h.tgt_min_len_infer, h.no_repeat_ngram_size),
            prefix=prefix,
            phrases=phrases,
            shortlist=shortlist,
            backend=h.decoder_backend,
        )
        prepared = self._prepare(source, length, document)
        if h.infer_mode == "beam_search":
            beam = BeamOptions(
                h.beam_width,
                h.length_penalty_weight,
                h.coverage_penalty_weight,
                num_best=h.num_translations_per_input,
            )
            return prepared, search.beam_search(self.model, prepared, beam, options)
        if h.infer_mode == "greedy":
            return prepared, search.greedy(self.model, prepared, options, width)
        return prepared, self._sample(source, length, document, options)

    def _prepare(self, source: tf.Tensor, length: tf.Tensor, document: Any) -> Prepared:
        dtype = compute_dtype(self.hparams.infer_precision)
        return self.model.prepare(source, length, dtype=dtype, document=document)

    def _sample(
        self, source: tf.Tensor, length: tf.Tensor, document: Any, options: SearchOptions
    ) -> Hypotheses:
        """Draws the translations of a sentence as rows of one batch; returns the best first."""
        h, count = self.hparams, self.hparams.num_translations_per_input
        repeated = tf.nest.map_structure(
            lambda part: tf.repeat(part, count, axis=0), (source, length, document)
        )
        if options.prefix is not None:
            options = options._replace(prefix=tf.repeat(options.prefix, count, axis=0))
        if options.shortlist is not None:
            options = options._replace(shortlist=options.shortlist.repeat(count))
        content = tf.reduce_sum(source)  # so that another batch draws other numbers
        hypotheses = search.sample(
            self.model,
            self._prepare(*repeated),
            SamplingOptions(h.sampling_temperature, h.sampling_top_k, h.sampling_top_p),
            tf.stack([h.random_seed, content]),
            options,
        )
        order = tf.argsort(tf.reshape(hypotheses.scores, [-1, count]), direction="DESCENDING")
        return tf.nest.map_structure(
            lambda part: part if part is None else _group_rows(part, order), hypotheses
        )


def _group_rows(part: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B*n, 1, ...]` to `[B, n, ...]`, and takes the n in an order `[B, n]`."""
    grouped = tf.reshape(part, tf.concat([tf.shape(order), tf.shape(part)[2:]], axis=0))
    return tf.gather(grouped, order, batch_dims=1)
