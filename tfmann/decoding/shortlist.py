"""A lexical shortlist: the words that the translations of a sentence may have.

As in the decoding of Jean et al. 2015 (arXiv:1412.2007) and of Marian: probabilities are normalised
over the words of the sentence's own list, the only ones that a search for it chooses from. The
readouts of a batch are projected to the columns of all its lists, which are gathered once, and the
words that are not in a row's list have a logit of -inf; so no translation depends on its batch. The
search is over columns, in the order of ids, the special symbols first: their columns are their ids.

Letters: B sentences, n of them in a stage of the search, M rows (hypotheses), C columns, R the
width of readouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.data.shortlist_lexicon import TranslationLists
from tfmann.decoding.ensemble import SearchModel
from tfmann.decoding.lexical_constraints import Phrases
from tfmann.decoding.next_words import BLOCK
from tfmann.decoding.translation import SourceLine


class Shortlist(NamedTuple):
    """The lists of the sentences of a batch."""

    words: Any  # [C] int32, ids in ascending order; the last one is repeated
    is_allowed: Any  # [B, C] bool: the column is in the list of the sentence
    sentences: Any = ()  # [n] the sentences of a step's rows, in groups; (): all

    def of_sentences(self, sentences: tf.Tensor) -> Shortlist:
        """Returns the lists for the hypotheses of some sentences `[n]`."""
        return self._replace(sentences=sentences)

    def repeat(self, count: int) -> Shortlist:
        """Returns the lists of a batch that has every sentence `count` times in a row."""
        return self._replace(is_allowed=tf.repeat(self.is_allowed, count, axis=0))

    def ids(self, columns: tf.Tensor) -> tf.Tensor:
        """Returns the ids of columns `[...]`."""
        return tf.gather(self.words, columns)

    def columns(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the columns of ids `[...]` that have one; what is below 0 is no id and stays."""
        flat = tf.reshape(tf.maximum(ids, 0), [-1])
        columns = tf.reshape(tf.searchsorted(self.words, flat), tf.shape(ids))
        return tf.where(ids < 0, ids, columns)

    def phrases(self, phrases: Phrases) -> Phrases:
        """Returns phrases of columns."""
        boundaries = (None if part is None else self.of_columns(part) for part in phrases[1:])
        return Phrases(self.columns(phrases.ids), *boundaries)

    def of_columns(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the values `[C]` of the columns, from those of all ids `[V]`."""
        return tf.gather(values, self.words)

    def mark(self, readout: tf.Tensor) -> tf.Tensor:
        """Appends the number of its sentence to each row of readouts: `[M, R + 1]`."""
        sentences = self.sentences
        if isinstance(sentences, tuple):
            sentences = tf.range(tf.shape(self.is_allowed)[0])
        hypotheses = tf.shape(readout)[0] // tf.size(sentences)
        # numbers pass as floats: exact below 2**24
        marks = tf.repeat(tf.cast(sentences, tf.float32), hypotheses)
        return tf.concat([readout, marks[:, None]], axis=-1)

    def projection(self, model: SearchModel, dtype: tf.DType) -> Callable[[tf.Tensor], tf.Tensor]:
        """Returns the map from what `mark` returns to logits `[M, C]`, multiplying in `dtype`."""
        project = model.projection(dtype, words=self.words)

        def project_marked(marked: tf.Tensor) -> tf.Tensor:
            readout, marks = tf.split(marked, [-1, 1], axis=-1)
            sentences = tf.cast(marks[:, 0], tf.int32)
            return project(readout, tf.gather(self.is_allowed, sentences))

        return project_marked


SIGNATURE = Shortlist(tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, None], tf.bool))


def of_batch(lists: TranslationLists, lines: Sequence[SourceLine], hypotheses: int) -> Shortlist:
    """Returns the lists of lines, with what their translations must begin with and contain.

    Args:
      lists: of all source words.
      lines: the sentences of a batch.
      hypotheses: of a sentence, so that there are columns enough for their continuations.
    """
    ids = [
        lists.of_sentence(line.ids, [*line.prefix.ids, *(i for p in line.phrases for i in p)])
        for line in lines
    ]
    words = np.unique(np.concatenate(ids))
    size = max(len(words), hypotheses + 2)
    size += -size % BLOCK  # `next_words.top_words`
    is_allowed = np.zeros([len(lines), size], bool)
    for row, allowed in zip(is_allowed, ids):
        row[np.searchsorted(words, allowed)] = True
    return Shortlist(np.pad(words, [0, size - len(words)], mode="edge"), is_allowed)
