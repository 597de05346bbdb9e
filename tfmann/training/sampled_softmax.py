"""Sampled softmax: a loss over the labels of an update and a sample of the other words.

The projection to a large vocabulary takes a third to a half of an update, and much memory. Here the
projection is to the labels of the update, all of them candidates of every row, and to
`num_sampled_softmax` other words. A word that was drawn with probability pi has weight 1 / pi, so
that the normaliser of the softmax has the right mean (Jean et al. 2015, section 3, with weights in
place of their fixed parts of the corpus).

Words are drawn without replacement in proportion to Zipf's law over ids, as in a vocabulary sorted
by frequency; in another order the estimate has the same mean and a greater variance. Word v arrives
at an exponentially distributed time of rate P(v), and the first are taken (Efraimidis & Spirakis
2006). Given the arrival t of the first word not taken, pi = 1 - exp(-P(v) t) (Cohen & Kaplan 2007).
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Sample(NamedTuple):
    """A sample of C words out of V."""

    words: tf.Tensor  # [C] ids, each once
    log_weights: tf.Tensor  # [C], -log pi: 0 for the labels
    positions: tf.Tensor  # [V], the index of each word in `words`; C if it is not in the sample

    def projection(
        self, kernel: tf.Tensor, bias: tf.Tensor | None, labels: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Reduces a projection to all words to one to the sample, whose softmax estimates its own.

        Args:
          kernel: `[R, V]`.
          bias: `[V]`, or None.
          labels: `[M]`.

        Returns:
          the kernel `[R, C]`, the bias `[C]` and the labels `[M]` of the sample.
        """
        offset = self.log_weights
        if bias is not None:
            # as a matrix of one row, whose gradient is a tensor and not IndexedSlices
            offset += tf.gather(bias[tf.newaxis], self.words, axis=-1)[0]
        return tf.gather(kernel, self.words, axis=-1), offset, tf.gather(self.positions, labels)


def draw(labels: tf.Tensor, size: int, uniform: tf.Tensor) -> Sample:
    """Draws a sample: all labels and `size` other words, or the whole vocabulary if it is smaller.

    Args:
      labels: `[M]` ids.
      size: number of words to draw besides the labels.
      uniform: `[V]` random numbers in [0, 1).
    """
    vocabulary = tf.shape(uniform)[0]
    rank = tf.cast(tf.range(vocabulary), tf.float32) + 1.0
    rates = tf.math.log1p(1.0 / rank) / tf.math.log(tf.cast(vocabulary, tf.float32) + 1.0)
    labelled = tf.math.unsorted_segment_sum(tf.ones_like(labels), labels, vocabulary) > 0
    arrivals = tf.where(labelled, -1.0, -tf.math.log1p(-uniform) / rates)
    distinct = tf.reduce_sum(tf.cast(labelled, tf.int32))
    count = tf.minimum(distinct + size, vocabulary)
    # one more than is taken; if all words are taken, the next arrival is infinite
    times, order = tf.math.top_k(-tf.concat([arrivals, [float("inf")]], axis=0), count + 1)
    words, end = order[:count], -times[count]
    draw_probability = -tf.math.expm1(-tf.gather(rates, words) * end)
    inclusion = tf.where(tf.gather(labelled, words), 1.0, draw_probability)
    absent = tf.fill([vocabulary], count)
    positions = tf.tensor_scatter_nd_update(absent, words[:, tf.newaxis], tf.range(count))
    return Sample(words, -tf.math.log(inclusion), positions)
