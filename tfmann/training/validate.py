"""Mean loss over a set of pairs, without dropout, in float32."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from tfmann.corpus.pipeline import Batch
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import around
from tfmann.training.objective import sum_loss
from tfmann.training.step import BATCH_SIGNATURE


class Perplexity:
    """A model's mean cross-entropy a target word, compiled once."""

    def __init__(self, model: Seq2Seq):
        """Compiles at the first use."""
        self._model = model
        self._losses = tf.function(
            lambda batch, beside: sum_loss(model, batch, None, tf.float32, around.begin(beside)),
            autograph=False,  # nothing here needs it, and it takes seconds
            input_signature=[BATCH_SIGNATURE, around.signature(model)],
        )

    def mean_loss(self, batches: Iterable[Batch]) -> float:
        """Natural logarithm of the perplexity, `</s>` counted as a word.

        Of a model that keeps a cache, row b of a batch goes on where row b of the one before stood.
        """
        total, words, kept = 0.0, 0, None
        for batch in batches:
            loss = self._losses(tuple(batch[:5]), around.of(self._model, batch, kept))
            kept = loss.kept
            total += float(loss.cross_entropy)
            words += int(loss.words)
        return total / max(1, words)
