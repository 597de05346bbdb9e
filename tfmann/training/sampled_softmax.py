"""Sampled softmax: a loss that looks at the labels of an update and at a sample of the other words.

A large vocabulary's projection takes a third to a half of an update, and much memory. Here the
labels of the update, all of them candidates of every row, and `num_sampled_softmax` other words are
projected to, and a word that was drawn with probability pi stands for 1 / pi words: the sum that a
softmax is divided by has the right mean (Jean et al. 2015, section 3, with weights in place of
their fixed parts of the corpus).

Words are drawn without replacement in proportion to Zipf's law over ids, as a vocabulary sorted by
frequency has it; of another order the estimate is as right, only not as close. Word v arrives at an
exponentially distributed time of rate P(v), and the first are taken (Efraimidis & Spirakis 2006).
Given the arrival t of the first that is not, pi = 1 - exp(-P(v) t) (Cohen & Kaplan 2007).
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Sample(NamedTuple):
    """C words of V."""

    words: tf.Tensor  # [C] ids, each once
    log_weights: tf.Tensor  # [C], -log pi: 0 for the labels
    places: tf.Tensor  # [V], where a word is in `words`; C for one that is not

    def columns(self, values: tf.Tensor) -> tf.Tensor:
        """Those of `[R, V]` or `[V]` that belong to the words, `[R, C]` or `[C]`."""
        at = self.words[:, tf.newaxis]

        @tf.custom_gradient
        def run(values: tf.Tensor):
            def gradient(d: tf.Tensor) -> tf.Tensor:
                # as rows: a column's elements, each by itself, take twice as long to put in
                turned = values.shape[::-1]  # a weight's: known
                return tf.transpose(tf.scatter_nd(at, tf.transpose(d), turned))

            return tf.gather(values, self.words, axis=-1), gradient

        return run(tf.convert_to_tensor(values))

    def projection(
        self, kernel: tf.Tensor, bias: tf.Tensor | None, labels: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Kernel `[R, V]`, bias `[V]` or None and labels `[M]` of a projection to all words.

        Returns:
          those of one to the sample's words, whose softmax estimates the whole one: `[R, C]`,
          `[C]`, `[M]`.
        """
        offset = self.log_weights if bias is None else self.log_weights + self.columns(bias)
        return self.columns(kernel), offset, tf.gather(self.places, labels)


def draw(labels: tf.Tensor, size: int, uniform: tf.Tensor) -> Sample:
    """All labels and `size` other words, or all words if there are not as many.

    Args:
      labels: `[M]` ids.
      size: how many words are drawn beside them.
      uniform: `[V]` random numbers in [0, 1).
    """
    vocabulary = tf.shape(uniform)[0]
    rank = tf.cast(tf.range(vocabulary), tf.float32) + 1.0
    rates = tf.math.log1p(1.0 / rank) / tf.math.log(tf.cast(vocabulary, tf.float32) + 1.0)
    labelled = tf.math.unsorted_segment_sum(tf.ones_like(labels), labels, vocabulary) > 0
    arrivals = tf.where(labelled, -1.0, -tf.math.log1p(-uniform) / rates)
    distinct = tf.reduce_sum(tf.cast(labelled, tf.int32))
    count = tf.minimum(distinct + size, vocabulary)
    # one more than is taken; where all words are, nothing ever arrives after them
    times, found = tf.math.top_k(-tf.concat([arrivals, [float("inf")]], axis=0), count + 1)
    words, end = found[:count], -times[count]
    drawn = -tf.math.expm1(-tf.gather(rates, words) * end)
    inclusion = tf.where(tf.gather(labelled, words), 1.0, drawn)
    absent = tf.fill([vocabulary], count)
    places = tf.tensor_scatter_nd_update(absent, words[:, tf.newaxis], tf.range(count))
    return Sample(words, -tf.math.log(inclusion), places)
