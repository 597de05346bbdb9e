"""A neural Turing machine in Keras learns to copy sequences (Graves et al. 2014, section 4.1)."""

import numpy as np
import tensorflow as tf

from tfmann.models.keras_cell import keras_cell

tf.keras.utils.set_random_seed(1)
LENGTH, WIDTH = 6, 4
bits = np.random.default_rng(1).integers(0, 2, [2048, LENGTH, WIDTH]).astype("float32")
inputs = np.concatenate([bits, np.zeros_like(bits)], axis=1)  # the bits, then silence,
targets = np.concatenate([np.zeros_like(bits), bits], axis=1)  # in which they are repeated
counted = np.repeat([[0.0, 1.0]], LENGTH, axis=1) * np.ones([2048, 1])  # only the repetition

memory = {"num_memory_locations": 16, "memory_unit_size": 12, "head_start": "tape"}
cell = keras_cell("ntm", input_width=WIDTH, num_units=64, **memory)
recurrent = tf.keras.layers.RNN(cell, return_sequences=True)
model = tf.keras.Sequential([recurrent, tf.keras.layers.Dense(WIDTH, "sigmoid")])
optimizer = tf.keras.optimizers.Adam(0.01, clipnorm=1.0)
model.compile(optimizer, "binary_crossentropy", weighted_metrics=["binary_accuracy"])
history = model.fit(inputs, targets, batch_size=32, epochs=6, sample_weight=counted, verbose=2)
