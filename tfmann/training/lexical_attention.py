"""The attention over a memory of word translations, learned while everything else is frozen.

The second of the two stages of Feng et al. 2017 (arXiv:1708.02005, section 3.3): W_u, W_q and v of
`memory.lexical_memory`, by the mean of -log beta over the words that are in their memories.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.data.batching import Batch
from tfmann.data.translation_table import TranslationTable
from tfmann.decoding.forced_readouts import forced_readouts
from tfmann.decoding.lexical_translator import entries
from tfmann.memory import lexical_memory
from tfmann.memory.lexical_memory import LexicalEntries, LexicalWeights, entries_signature
from tfmann.models.seq2seq import BATCH_SIGNATURE, Seq2Seq
from tfmann.training.optimizer import make_optimizer

# Not the 0 of v in the authors' program, with which no gradient reaches the kernels at first.
_KERNEL_DEVIATION, _VECTOR_DEVIATION = 0.001, 0.01
_GREATEST_NORM = 1.0


class Fit(NamedTuple):
    """How well the attention finds the words of a text.

    Attributes:
      loss: mean of -log beta over the words that are in their memories.
      coverage: share of the words, `</s>` left out, that are.
    """

    loss: float
    coverage: float


class LexicalAttentionTrainer:
    """Learns the attention for one model and one table.

    Attributes:
      weights: variables.
    """

    def __init__(self, model: Seq2Seq, table: TranslationTable, depth: int, rate: float):
        """Draws the first weights by the model's `random_seed`; `depth` is A, `rate` Adam's."""
        self._model, self._table = model, table
        width = model.cell.annotation_width + model.target_embedding.shape[1]
        stream = np.random.default_rng(model.hparams.random_seed)

        def variable(deviation: float, *shape: int) -> tf.Variable:
            return tf.Variable(stream.normal(scale=deviation, size=shape).astype(np.float32))

        self.weights = LexicalWeights(
            element_kernel=variable(_KERNEL_DEVIATION, width, depth),
            query_kernel=variable(_KERNEL_DEVIATION, model.readout_width, depth),
            score_vector=variable(_VECTOR_DEVIATION, depth),
        )
        settings = model.hparams.replace(optimizer="adam", learning_rate=rate)
        self._optimizer = make_optimizer(settings)
        self._update = self._compile(self._update_weights)
        self._measure = self._compile(self._sums)

    def learn(
        self,
        batches: Iterable[Batch],
        every: int,
        log: Callable[[int, Fit], None],
    ) -> None:
        """Makes an update on each batch; logs the fit of the last `every` updates."""
        sums = []
        for number, batch in enumerate(batches, start=1):
            sums.append(self._run(self._update, batch))
            if number % every == 0:
                log(number, _fit(sums))
                sums.clear()

    def evaluate(self, batches: Iterable[Batch]) -> Fit:
        """Measures the fit on batches."""
        return _fit([self._run(self._measure, batch) for batch in batches])

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the weights by name."""
        return {name: part.numpy() for name, part in self.weights._asdict().items()}

    def _run(self, function: Callable[..., tf.Tensor], batch: Batch) -> np.ndarray:
        eos = self._model.hparams.append_source_eos
        lengths = (batch.source_length - eos).tolist()
        sentences = [ids[:length].tolist() for ids, length in zip(batch.source, lengths)]
        found = entries(self._table, sentences, eos)
        return function(*batch[:5], found).numpy()

    def _compile(self, function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
        signature = [*BATCH_SIGNATURE, entries_signature()]
        return tf.function(function, autograph=False, input_signature=signature)

    def _sums(
        self,
        source: tf.Tensor,
        source_length: tf.Tensor,
        target_in: tf.Tensor,
        target_out: tf.Tensor,
        target_length: tf.Tensor,
        found: LexicalEntries,
    ) -> tf.Tensor:
        """Sums the loss, the words in memory and all words but `</s>`: `[3]`."""
        prepared = self._model.prepare(source, source_length)
        readouts = forced_readouts(self._model, prepared, target_in, target_length)
        memory = lexical_memory.prepare(
            found,
            self.weights,
            tf.stop_gradient(prepared.encoded.annotations),
            tf.stop_gradient(self._model.target_embedding),
            mixture_weight=0.0,
        )
        losses, has_slot = lexical_memory.losses(memory, tf.stop_gradient(readouts), target_out)
        is_word = tf.sequence_mask(target_length - 1, tf.shape(target_out)[1], tf.float32)
        in_memory = is_word * tf.cast(has_slot, tf.float32)
        return tf.stack([tf.reduce_sum(part) for part in (losses * is_word, in_memory, is_word)])

    def _update_weights(self, *batch: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self.weights)
            sums = self._sums(*batch)
            loss = sums[0] / tf.maximum(sums[1], 1.0)
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, self.weights), _GREATEST_NORM)
        self._optimizer.apply_gradients(zip(gradients, self.weights))
        return sums


def _fit(sums: list[np.ndarray]) -> Fit:
    loss, in_memory, words = np.sum(sums, axis=0, dtype=np.float64).tolist()
    return Fit(loss / max(in_memory, 1.0), in_memory / max(words, 1.0))
