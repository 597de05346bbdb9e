"""Optimizers by name, and the learning rate as a function of the step."""

from __future__ import annotations

import tensorflow as tf

from tfmann.hparams import HParams

# name -> (share of the run before the first halving, number of halvings), as tensorflow/nmt
_DECAY = {"luong5": (1 / 2, 5), "luong10": (1 / 2, 10), "luong234": (2 / 3, 4)}


def learning_rate(hparams: HParams, step: int) -> float:
    """The rate of the update that makes `step` steps into `step + 1`.

    Warm-up (t2t): `rate * 0.01^((warmup - step) / warmup)`. Decay: halved each time a share of
    the run has passed.
    """
    rate = hparams.learning_rate
    warmup = hparams.warmup_steps
    if step < warmup:
        rate *= 0.01 ** ((warmup - step) / warmup)
    if hparams.decay_scheme:
        share, times = _DECAY[hparams.decay_scheme]
        start = int(hparams.num_train_steps * share)
        interval = max(1, (hparams.num_train_steps - start) // times)
        if step >= start:
            rate *= 0.5 ** ((step - start) // interval)
    return rate


def make_optimizer(hparams: HParams) -> tf.keras.optimizers.legacy.Optimizer:
    """Builds the optimizer.

    Keras's legacy optimizers are used because each update is one fused operation per weight.
    """
    rate = hparams.learning_rate
    if hparams.optimizer == "sgd":
        return tf.keras.optimizers.legacy.SGD(rate)
    if hparams.optimizer == "adam":
        return tf.keras.optimizers.legacy.Adam(rate, epsilon=1e-8)
    return tf.keras.optimizers.legacy.Adadelta(
        rate, rho=hparams.adadelta_rho, epsilon=hparams.adadelta_epsilon
    )
