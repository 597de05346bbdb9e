"""Mean loss over a set of pairs, without dropout, in float32."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from tfmann.corpus.pipeline import Batch
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training.objective import sum_loss
from tfmann.training.step import BATCH_SIGNATURE


class Perplexity:
    """A model's mean cross-entropy a target word, compiled once."""

    def __init__(self, model: Seq2Seq):
        """Compiles at the first use."""
        self._losses = tf.function(
            lambda *batch: sum_loss(model, batch, None, tf.float32),
            autograph=False,  # nothing here needs it, and it takes seconds
            input_signature=list(BATCH_SIGNATURE),
        )

    def mean_loss(self, batches: Iterable[Batch]) -> float:
        """Natural logarithm of the perplexity, `</s>` counted as a word."""
        total, words = 0.0, 0
        for batch in batches:
            loss = self._losses(*batch[:5])
            total += float(loss.cross_entropy)
            words += int(loss.words)
        return total / max(1, words)
