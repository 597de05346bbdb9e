"""What a SavedModel answers: its signatures.

`serving_default` takes lines and knows of no other sentence. Models that look at other sentences
have two more: `begin` gives what is kept of documents before their first line, and `document`
takes the next line of each with what was kept, and returns that too.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfmann import hparams as hparams_module
from tfmann.corpus.vocab import EOS_ID
from tfmann.decoding import search
from tfmann.decoding.translator import Translator
from tfmann.export import kept as kept_module
from tfmann.export.sides import Asked, Source, Target

_LINES = tf.TensorSpec([None], tf.string)
_ROWS = tf.TensorSpec([], tf.int32)


class Server(tf.Module):
    """A translator from strings to strings, in TensorFlow alone."""

    def __init__(self, translator: Translator):
        """Takes the weights, the vocabularies and the search settings of a translator."""
        super().__init__()
        model, hparams = translator.model, translator.hparams
        # The model is not tracked, its weights are: Keras would write its layers into the file.
        self._find, self._of_document = translator.find, kept_module.keeper(model)
        self._weights = list(model.variables)
        self._source = Source(translator.languages.source, hparams)
        self._target = Target(translator.languages.target, translator.lines.lexicon)
        self._attends = hparams_module.has_alignments(hparams.cell)

    def signatures(self) -> dict[str, Any]:
        """Concrete functions by the names of their signatures."""
        found = {"serving_default": _trace(self._serve, lines=_LINES)}
        if self._of_document is not None:
            kept = kept_module.named(self._of_document.signature)
            found["document"] = _trace(self._serve_document, lines=_LINES, **kept)
            found["begin"] = _trace(self._begin, rows=_ROWS)
        return found

    def _serve(self, lines: tf.Tensor) -> dict[str, tf.Tensor]:
        count = tf.size(lines)
        lines = tf.concat([lines, tf.fill([tf.cast(count == 0, tf.int32)], "")], axis=0)
        around: Any = ()
        if self._of_document is not None:
            around = self._of_document.nothing(tf.size(lines))
        asked = self._source.read(lines)
        _, found = self._find(asked.ids, asked.length, around, self._attends)
        # what is searched is never empty; what was asked may be
        return {name: value[:count] for name, value in self._answer(asked, found).items()}

    def _serve_document(self, lines: tf.Tensor, **kept: tf.Tensor) -> dict[str, tf.Tensor]:
        keeper = self._of_document
        assert keeper is not None
        before = kept_module.unnamed(keeper.signature, kept)
        asked = self._source.read(lines)
        prepared, found = self._find(asked.ids, asked.length, before, self._attends, keeper.record)
        after = keeper.after(before, asked, prepared, found)
        return {**self._answer(asked, found), **kept_module.named(after)}

    def _begin(self, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        assert self._of_document is not None
        return kept_module.named(self._of_document.nothing(rows))

    def _answer(self, asked: Asked, found: search.Hypotheses) -> dict[str, tf.Tensor]:
        """What `Lines.n_best` says, padded: with "", with 0, and with -inf for a score.

        Letters: n translations a line.
        """
        first = tf.range(tf.shape(found.ids)[1]) == 0
        there = (found.scores > -float("inf")) | first  # the search may have found fewer
        there &= ~asked.blank[:, None]
        lengths = tf.where(there, tf.cast(found.lengths, tf.int32), 0)
        real = tf.sequence_mask(lengths, tf.shape(found.ids)[2])  # [B, n, T]
        ended = tf.cumsum(tf.cast(found.ids == EOS_ID, tf.int32), axis=2) > 0
        answer = {
            "translations": self._target.text(found.ids, real & ~ended, asked, found.alignments),
            "scores": tf.where(asked.blank[:, None], 0.0, found.scores),
            "tokens": tf.where(real, self._target.tokens(found.ids), ""),
            "lengths": lengths,
            "source_tokens": asked.tokens,
            "source_lengths": tf.where(asked.blank, 0, asked.length),
        }
        if self._attends:
            columns = asked.tokens[:, None, None] != ""
            answer["alignments"] = tf.where(real[..., None] & columns, found.alignments, 0.0)
        return answer


def _trace(run: Any, **signature: Any) -> Any:
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in signature.items()}
    return tf.function(run, autograph=False).get_concrete_function(**named)
