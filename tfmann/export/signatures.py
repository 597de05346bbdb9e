"""The signatures of an exported SavedModel.

`serving_default` translates lines independently. Models that read other sentences have two more:
`begin` returns the state of documents before their first line, and `document` takes the next line
of each document with its state, and returns the new state with the translations.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfmann import config
from tfmann.data.vocab import EOS_ID
from tfmann.decoding import search
from tfmann.decoding.translator import Translator
from tfmann.export.document_state import document_state, pack, unpack
from tfmann.export.graph_text import EncodedLines, SourceText, TargetText
from tfmann.ops.gradients import without_gradients

_LINES = tf.TensorSpec([None], tf.string)
_ROWS = tf.TensorSpec([], tf.int32)


class TranslationModule(tf.Module):
    """A translator from strings to strings in TensorFlow operations only."""

    def __init__(self, translator: Translator):
        """Takes the weights, the vocabularies and the search settings of a translator."""
        super().__init__()
        model, hparams = translator.model, translator.hparams
        # Only the weights are tracked: of a tracked model, Keras would save every layer.
        self._search, self._state = translator.searcher.search, document_state(model)
        self._weights = list(model.variables)
        self._source = SourceText(translator.languages.source, hparams)
        self._target = TargetText(translator.languages.target, translator.text.lexicon)
        self._has_alignments = config.cell_spec(hparams.cell).has_alignments

    def signatures(self) -> dict[str, Any]:
        """Returns the concrete function of each signature, by name."""
        functions = {"serving_default": _trace(self._serve, lines=_LINES)}
        if self._state is not None:
            state = pack(self._state.signature)
            functions["document"] = _trace(self._serve_document, lines=_LINES, **state)
            functions["begin"] = _trace(self._begin, rows=_ROWS)
        return functions

    def _serve(self, lines: tf.Tensor) -> dict[str, tf.Tensor]:
        count = tf.size(lines)
        lines = _at_least_one(lines)
        document: Any = ()
        if self._state is not None:
            document = self._state.empty(tf.size(lines))
        encoded = self._source.encode(lines)
        _, hypotheses = self._search(encoded.ids, encoded.length, document, self._has_alignments)
        return _first_rows(self._outputs(encoded, hypotheses), count)

    def _serve_document(self, lines: tf.Tensor, **arrays: tf.Tensor) -> dict[str, tf.Tensor]:
        state = self._state
        assert state is not None
        count = tf.size(lines)
        given = unpack(state.signature, arrays)
        before = tf.cond(count == 0, lambda: state.empty(1), lambda: given)
        encoded = self._source.encode(_at_least_one(lines))
        prepared, hypotheses = self._search(
            encoded.ids, encoded.length, before, self._has_alignments, state.record
        )
        after = state.update(before, encoded, prepared, hypotheses)
        return _first_rows({**self._outputs(encoded, hypotheses), **pack(after)}, count)

    def _begin(self, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        assert self._state is not None
        return pack(self._state.empty(rows))

    def _outputs(self, lines: EncodedLines, hypotheses: search.Hypotheses) -> dict[str, tf.Tensor]:
        """Returns the outputs of a signature, padded: with "", with 0, scores with -inf.

        Letters: n translations a line.
        """
        ids, scores = hypotheses.ids, hypotheses.scores
        first = tf.range(tf.shape(ids)[1]) == 0
        exists = (scores > -float("inf")) | first  # the search may find fewer than n
        exists &= ~lines.blank[:, None]
        lengths = tf.where(exists, tf.cast(hypotheses.lengths, tf.int32), 0)
        real = tf.sequence_mask(lengths, tf.shape(ids)[2])  # [B, n, T]
        ended = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), axis=2) > 0
        outputs = {
            "translations": self._target.text(ids, real & ~ended, lines, hypotheses.alignments),
            "scores": tf.where(lines.blank[:, None], 0.0, scores),
            "tokens": tf.where(real, self._target.tokens(ids), ""),
            "lengths": lengths,
            "source_tokens": lines.tokens,
            "source_lengths": tf.where(lines.blank, 0, lines.length),
        }
        if self._has_alignments:
            columns = lines.tokens[:, None, None] != ""
            outputs["alignments"] = tf.where(real[..., None] & columns, hypotheses.alignments, 0.0)
        return outputs


def _at_least_one(lines: tf.Tensor) -> tf.Tensor:
    """Adds a blank line to a request of none, because a search needs a line."""
    return tf.concat([lines, tf.fill([tf.cast(tf.size(lines) == 0, tf.int32)], "")], axis=0)


def _first_rows(outputs: dict[str, tf.Tensor], count: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the outputs of the first `count` lines, those of the request."""
    return {name: value[:count] for name, value in outputs.items()}


def _trace(run: Any, **signature: Any) -> Any:
    """Returns the concrete function of `run` for arguments of these specs, by name."""
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in signature.items()}
    return tf.function(without_gradients(run), autograph=False).get_concrete_function(**named)
