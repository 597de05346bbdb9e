"""Training of the network of adaptive kNN-MT on a development set; everything else is frozen.

Zheng et al. 2021 (arXiv:2105.13022, section 3). `memory.adaptive_neighbors` has the equations. The
model and the memory do not change, so each position of the references is decoded once: its
neighbours, and the model's log-probability of its word, are all that training reads. The loss is
-log p of the reference's words. A tenth of the sentences is held back; the weights with the least
loss on these are the result.

As in the paper's code: Adam with 3e-4, 0.9 and 0.98, 32 sentences, at most 5,000 updates, gradients
clipped to norm 1, a rate that is halved on a plateau down to 3e-5. Its label smoothing of 0.001 is
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.data.batching import chunks
from tfmann.data.vocab import EOS_ID
from tfmann.decoding.memory_translator import MemoryTranslator
from tfmann.memory import adaptive_neighbors
from tfmann.memory.adaptive_neighbors import MetaNetwork
from tfmann.memory.word_mixture import NO_WORD

UPDATES = 5000  # at most
_RATE, _LEAST_RATE = 3e-4, 3e-5
_SENTENCES = 32  # of an update
_EVALUATE = 100  # updates from one evaluation to the next
_PATIENCE = 5  # evaluations without a lower loss, before the rate is halved
_HELD_BACK = 10  # one sentence in ten


class Examples(NamedTuple):
    """The N positions that have a neighbour, or some of them; tensors while an update is traced."""

    distances: np.ndarray  # float32 [N, K]
    words: np.ndarray  # int32 [N, K]
    references: np.ndarray  # int32 [N]
    log_probs: np.ndarray  # float32 [N], of the references by the model alone

    def take(self, sentences: Iterable[np.ndarray]) -> Examples:
        """Returns the positions of sentences, each given as an array of indices."""
        rows = np.concatenate(list(sentences))
        return Examples(*(part[rows] for part in self))


class TrainedNetwork(NamedTuple):
    """The weights with the least loss on the words held back, in nats per word."""

    network: MetaNetwork  # of arrays
    updates: int
    loss: float
    model_loss: float  # of the model alone
    shares: np.ndarray  # [C] the mean of m


def examples(
    translator: MemoryTranslator,
    pairs: Sequence[tuple[str, str]],
    neighbors: int,
    count: Callable[[], object] = lambda: None,
) -> tuple[Examples, list[np.ndarray]]:
    """Scores the pairs of a development set by forced decoding.

    Args:
      translator: the model and its memory.
      pairs: lines.
      neighbors: K.
      count: is called after each pair.

    Returns:
      the positions, and for each sentence that has any, their indices.
    """
    project, encode = translator.model.projection(), translator.languages.target.encode
    parts, sentences, total = [], [], 0
    for (_, target), found in zip(pairs, translator.neighbors(pairs, neighbors)):
        count()
        if found.words[0, 0] == NO_WORD:  # then all positions have no entry
            continue
        references = np.array([*encode(target), EOS_ID], np.int32)
        log_probs = tf.nn.log_softmax(project(tf.constant(found.readouts))).numpy()
        chosen = log_probs[np.arange(len(references)), references]
        parts.append(Examples(found.distances, found.words, references, chosen))
        sentences.append(np.arange(total, total + len(references)))
        total += len(references)
    if not parts:
        return Examples(*[np.zeros([0])] * 4), []
    return Examples(*(np.concatenate(part) for part in zip(*parts))), sentences


def train(
    positions: Examples,
    sentences: Sequence[np.ndarray],
    temperature: float,
    seed: int = 1,
    count: Callable[[], object] = lambda: None,
) -> TrainedNetwork:
    """Trains a network on what `examples` returns for at least `_HELD_BACK` sentences.

    Args:
      positions: of all sentences.
      sentences: the positions of each.
      temperature: T.
      seed: of the initial weights and the order of sentences.
      count: is called after each update.
    """
    held_back = positions.take(sentences[_HELD_BACK - 1 :: _HELD_BACK])
    rest = [rows for number, rows in enumerate(sentences) if (number + 1) % _HELD_BACK]
    initial = adaptive_neighbors.initial_network(positions.words.shape[1], seed)
    network = MetaNetwork(*(tf.Variable(part) for part in initial))
    optimizer = tf.keras.optimizers.legacy.Adam(_RATE, 0.9, 0.98, epsilon=1e-8)
    update = _update_function(network, optimizer, temperature)
    best, best_loss, best_updates = initial, float(_loss(network, held_back, temperature)), 0
    stale = 0
    for number, batch in enumerate(_batches(rest, seed), start=1):
        update(*positions.take(batch))
        count()
        if number % _EVALUATE == 0:
            loss = float(_loss(network, held_back, temperature))
            stale += 1
            if loss < best_loss:
                best = MetaNetwork(*(part.numpy() for part in network))
                best_loss, best_updates, stale = loss, number, 0
            elif stale % _PATIENCE == 0:
                optimizer.learning_rate = optimizer.learning_rate * 0.5
                if float(optimizer.learning_rate) < _LEAST_RATE:
                    break
    x = adaptive_neighbors.features(held_back.distances, held_back.words, temperature)
    shares = tf.nn.softmax(adaptive_neighbors.share_logits(x, best))
    return TrainedNetwork(
        best, best_updates, best_loss, -float(held_back.log_probs.mean()),
        tf.reduce_mean(shares, axis=0).numpy(),
    )  # fmt: skip


def _loss(network: MetaNetwork, positions: Examples, temperature: float) -> tf.Tensor:
    """Computes the mean of -log p of the references."""
    proposals = adaptive_neighbors.propose(
        positions.distances, positions.words, temperature, network
    )
    log_probs = adaptive_neighbors.word_log_probs(
        proposals, positions.references, positions.log_probs
    )
    return -tf.reduce_mean(log_probs)


def _update_function(
    network: MetaNetwork, optimizer: tf.keras.optimizers.legacy.Optimizer, temperature: float
) -> tf.types.experimental.GenericFunction:
    neighbors = network.w_1.shape[0] // 2

    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec([None, neighbors]), tf.TensorSpec([None, neighbors], tf.int32),
            tf.TensorSpec([None], tf.int32), tf.TensorSpec([None]),
        ],
    )  # fmt: skip
    def update(*parts: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = _loss(network, Examples(*parts), temperature)
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, list(network)), 1.0)
        optimizer.apply_gradients(zip(gradients, network))

    return update


def _batches(sentences: Sequence[np.ndarray], seed: int) -> Iterator[list[np.ndarray]]:
    """Yields `UPDATES` batches; every epoch has its own order."""
    stream = np.random.default_rng(seed)
    made = 0
    while True:
        order = stream.permutation(len(sentences))
        for numbers in chunks(order, _SENTENCES):
            if made == UPDATES:
                return
            made += 1
            yield [sentences[number] for number in numbers]
