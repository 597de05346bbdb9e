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
embed, project = tf.keras.layers.Embedding(SYMBOLS, 32), tf.keras.layers.Dense(SYMBOLS)
annotations = encoder(words)
outputs, weights = decoder([embed(target), annotations], return_attention_scores=True)
model = tf.keras.Model([source, target], project(outputs))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.004, clipnorm=1.0), loss, weighted_metrics=["accuracy"])
history = model.fit([sources, given], targets, sample_weight=1.0 * real, epochs=4, verbose=2)

attention = tf.keras.Model([source, target], weights)([sources[:1], given[:1]])[0]  # [T, S]
print(np.round(attention, 2))

encoded, mask = tf.keras.Model(source, annotations)(sources[:32]), [None, real[:32]]
word, state, chosen = np.ones([32, 1]), None, []  # without the targets: one symbol after the other
for _ in range(LENGTH):
    output, *state = decoder(
        [embed(word), encoded], mask=mask, initial_state=state, return_state=True
    )
    word = np.argmax(project(output), axis=-1)
    chosen.append(word)
print("right without the targets:", np.mean((np.hstack(chosen) == targets[:32])[real[:32]]))
