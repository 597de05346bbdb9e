"""Cells run over a sequence, and their gradients."""

import tensorflow as tf

from tfmann.decoding.teacher_forcing import teacher_forced


def decode(model, batch, record, compiled):
    def run():
        prepared = model.prepare(batch.source, batch.source_length)
        outputs, embedded, diagnostics, _ = teacher_forced(
            model, prepared, batch.target_in, batch.target_length, record=record
        )
        steps = tf.shape(outputs)[0]
        flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
        readout = model.readout(flat, tf.reshape(embedded[:steps], [-1, embedded.shape[-1]]))
        readout = tf.reshape(readout, [steps, -1, readout.shape[-1]])
        return prepared, outputs, embedded, readout, diagnostics

    return (tf.function(run, autograph=False) if compiled else run)()


def gradients(model, batch, masks=None):
    from tfmann.training.objective import sum_loss

    with tf.GradientTape() as tape:
        loss = sum_loss(model, batch[:5], masks, tf.float32).total
    values = tape.gradient(loss, model.trainable_variables)
    return {
        v.name: tf.convert_to_tensor(g).numpy() for v, g in zip(model.trainable_variables, values)
    }
