"""The mean loss and the sharpness of addresses over a set of pairs; no dropout, float32."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann.data.batching import Batch
from tfmann.models.seq2seq import BATCH_SIGNATURE, Seq2Seq
from tfmann.ops.gradients import without_gradients
from tfmann.training import sharpness
from tfmann.training.document_inputs import document_context, document_inputs, signature
from tfmann.training.objective import Loss, sum_loss

_GREATEST = 88.0  # e^88 is within float32, the type of TensorBoard's curves


def perplexity(mean_loss: float) -> float:
    """Computes `e^mean_loss`, limited to what can be plotted if a run diverges."""
    return math.exp(min(mean_loss, _GREATEST))


class Perplexity:
    """A model's mean cross-entropy per target word and its sharpness, compiled once."""

    def __init__(self, model: Seq2Seq):
        """Compiles at the first use."""
        self._model = model
        self._sums = tf.function(
            without_gradients(self._sum_batch),
            autograph=False,  # nothing here needs it, and it takes seconds
            input_signature=[BATCH_SIGNATURE, signature(model)],
        )

    def _sum_batch(self, batch: tuple, inputs: Any) -> tuple[Loss, dict[str, tf.Tensor]]:
        document = document_context(inputs)
        loss = sum_loss(self._model, batch, None, tf.float32, document, with_addresses=True)
        of_target, of_source = loss.addresses
        measured = sharpness.measure(
            of_target, of_source, source_length=batch[1], target_length=batch[4]
        )
        return loss._replace(addresses=()), measured

    def measure(self, batches: Iterable[Batch]) -> tuple[float, sharpness.Sharpness]:
        """Measures a model on batches.

        With a cache, row b of a batch continues the document of row b of the batch before.

        Returns:
          the natural logarithm of the perplexity, `</s>` counted as a word; the sharpness of the
          addresses, by head and measure.
        """
        total, words, cache = 0.0, 0, None
        sums: dict[str, np.ndarray] = {}
        for batch in batches:
            inputs = document_inputs(self._model, batch, cache)
            loss, measured = self._sums(tuple(batch[:5]), inputs)
            cache = loss.cache
            total += float(loss.cross_entropy)
            words += int(loss.words)
            for name, value in measured.items():
                sums[name] = sums.get(name, 0.0) + value.numpy().astype(np.float64)
        end_of_source = self._model.hparams.append_source_eos
        return total / max(1, words), sharpness.means(sums, end_of_source)
