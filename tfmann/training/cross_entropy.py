"""Projection to the vocabulary and cross-entropy in one, with the gradient written out.

The widest tensor of training, `[M, V]`, is made once, turned into probabilities by one fused
softmax, and multiplied back; no second tensor of its size lives beside it in float32.
"""

from __future__ import annotations

import tensorflow as tf


def projected_cross_entropy(
    readout: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    labels: tf.Tensor,
    smoothing: float,
    dtype: tf.DType,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Sums the cross-entropies of words.

    Args:
      readout: `[M, R]`.
      kernel: `[R, V]`.
      bias: `[V]` or None.
      labels: `[M]` ids.
      smoothing: mass spread evenly over the vocabulary.
      dtype: type of the products; softmax and sums are float32.

    Returns:
      the smoothed sum, which has the gradient, and the plain one, which has none.
    """
    if bias is None:
        bias = tf.zeros([])  # adds nothing, gets a gradient nobody asks for

    @tf.custom_gradient
    def run(readout: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
        inputs, weights = tf.cast(readout, dtype), tf.cast(kernel, dtype)
        logits = tf.cast(tf.matmul(inputs, weights), tf.float32)
        logits = logits + bias if bias.shape.rank else logits
        probabilities = tf.nn.softmax(logits)
        # log sum exp from the greatest entry, whose probability never underflows
        greatest = tf.reduce_max(logits, axis=-1)
        normaliser = greatest - tf.math.log(tf.reduce_max(probabilities, axis=-1))
        plain = tf.reduce_sum(normaliser - tf.gather(logits, labels, batch_dims=1))
        total = plain
        if smoothing:
            even = tf.reduce_sum(normaliser - tf.reduce_mean(logits, axis=-1))
            total = (1.0 - smoothing) * plain + smoothing * even

        def gradient(d_total: tf.Tensor, d_plain: tf.Tensor):
            del d_plain
            at = tf.stack([tf.range(tf.shape(labels)[0]), labels], axis=1)
            hit = tf.fill(tf.shape(labels), 1.0 - smoothing)
            error = tf.tensor_scatter_nd_sub(probabilities, at, hit)
            if smoothing:
                error -= smoothing / tf.cast(tf.shape(logits)[1], tf.float32)
            cast = tf.cast(error, dtype)
            d_readout = tf.cast(tf.matmul(cast, weights, transpose_b=True), tf.float32)
            d_kernel = tf.cast(tf.matmul(inputs, cast, transpose_a=True), tf.float32)
            d_bias = tf.reduce_sum(error, axis=0) if bias.shape.rank else tf.zeros([])
            return d_total * d_readout, d_total * d_kernel, d_total * d_bias

        return (total, plain), gradient

    return run(readout, kernel, bias)


def cross_entropy(
    logits: tf.Tensor, labels: tf.Tensor, smoothing: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """The same sums from logits `[M, V]` that are more than a projection."""
    log_probs = tf.nn.log_softmax(logits)
    plain = -tf.reduce_sum(tf.gather(log_probs, labels, batch_dims=1))
    even = -tf.reduce_sum(tf.reduce_mean(log_probs, axis=-1))
    return (1.0 - smoothing) * plain + smoothing * even, tf.stop_gradient(plain)
