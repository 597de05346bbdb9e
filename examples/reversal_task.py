"""Key-value memory attention (Meng et al. 2018) in a Keras model learns to reverse sequences."""

import numpy as np
import tensorflow as tf

from tfmann.models.keras_decoder import KerasDecoder

SYMBOLS, LENGTH = 20, 6  # 0 is padding, and 1 is in front of every target
random, positions = np.random.default_rng(1), np.arange(LENGTH)
lengths = random.integers(3, LENGTH + 1, [4096, 1])
real = positions < lengths
sources = random.integers(2, SYMBOLS, [4096, LENGTH]) * real
targets = np.take_along_axis(sources, (lengths - 1 - positions).clip(0), axis=1) * real
given = np.pad(targets[:, :-1], [[0, 0], [1, 0]], constant_values=1)  # the symbol before

source, target = tf.keras.Input([None], dtype="int32"), tf.keras.Input([None], dtype="int32")
words = tf.keras.layers.Embedding(SYMBOLS, 32, mask_zero=True)(source)
encoder = tf.keras.layers.Bidirectional(tf.keras.layers.GRU(32, return_sequences=True))
decoder = KerasDecoder("kvmematt", num_units=64, num_rounds=2)
before = tf.keras.layers.Embedding(SYMBOLS, 32)(target)
outputs, weights = decoder([before, encoder(words)], return_attention_scores=True)
model = tf.keras.Model([source, target], tf.keras.layers.Dense(SYMBOLS)(outputs))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.004, clipnorm=1.0), loss, weighted_metrics=["accuracy"])
history = model.fit([sources, given], targets, sample_weight=1.0 * real, epochs=4, verbose=2)

attention = tf.keras.Model([source, target], weights)([sources[:1], given[:1]])[0]  # [T, S]
print(np.round(attention, 2))

words = np.ones([32, 1], dtype="int32")  # without the targets: a word is chosen, then the next
for _ in range(LENGTH):
    chosen = np.argmax(model([sources[:32], words])[:, -1:], axis=-1)
    words = np.concatenate([words, chosen], axis=1)
print("right without the targets:", np.mean((words[:, 1:] == targets[:32])[real[:32]]))
