"""Mean loss over a set of pairs, and how sharply a model addresses there; no dropout, float32."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann.corpus.pipeline import Batch
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import around, sharpness
from tfmann.training.objective import Loss, sum_loss
from tfmann.training.step import BATCH_SIGNATURE

_GREATEST = 88.0  # e^88 is within float32, in which curves are kept


def perplexity(mean_loss: float) -> float:
    """`e^mean_loss`; of a run that diverges, the greatest that can be shown."""
    return math.exp(min(mean_loss, _GREATEST))


class Perplexity:
    """A model's mean cross-entropy a target word, compiled once.

    Attributes:
      sharpness: that of the model's addresses in the last `mean_loss`, by head and measure.
    """

    def __init__(self, model: Seq2Seq):
        """Compiles at the first use."""
        self._model = model
        self._losses = tf.function(
            self._measure,
            autograph=False,  # nothing here needs it, and it takes seconds
            input_signature=[BATCH_SIGNATURE, around.signature(model)],
        )
        self.sharpness: sharpness.Sharpness = {}

    def _measure(self, batch: tuple, beside: Any) -> tuple[Loss, dict[str, tf.Tensor]]:
        loss = sum_loss(
            self._model, batch, None, tf.float32, around.begin(beside), addresses=True
        )
        seen, read = loss.addresses
        measured = sharpness.measure(seen, read, source_length=batch[1], target_length=batch[4])
        return loss._replace(addresses=()), measured

    def mean_loss(self, batches: Iterable[Batch]) -> float:
        """Natural logarithm of the perplexity, `</s>` counted as a word.

        Of a model that keeps a cache, row b of a batch goes on where row b of the one before stood.
        """
        total, words, kept = 0.0, 0, None
        sums: dict[str, np.ndarray] = {}
        for batch in batches:
            loss, measured = self._losses(tuple(batch[:5]), around.of(self._model, batch, kept))
            kept = loss.kept
            total += float(loss.cross_entropy)
            words += int(loss.words)
            for name, value in measured.items():
                sums[name] = sums.get(name, 0.0) + value.numpy().astype(np.float64)
        self.sharpness = sharpness.means(sums, self._model.hparams.append_source_eos)
        return total / max(1, words)
