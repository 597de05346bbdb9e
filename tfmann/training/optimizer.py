"""Optimizers by name, and the learning rate as a function of the step."""

from __future__ import annotations

import math

import tensorflow as tf

from tfmann.config import OptimizerSettings, TrainingSettings

# name -> (share of the run before the first halving, number of halvings), as in tensorflow/nmt
_HALVINGS = {"luong5": (1 / 2, 5), "luong10": (1 / 2, 10), "luong234": (2 / 3, 4)}
SLOTS = {"sgd": 0, "adam": 2, "adadelta": 2}  # numbers stored for each weight
_RATES = {"sgd": 1.0, "adam": 0.001, "adadelta": 1.0}  # the default of `learning_rate`


def base_rate(hparams: OptimizerSettings) -> float:
    """Returns the rate before warm-up and decay: `learning_rate`, or the optimizer's default."""
    if hparams.learning_rate is None:
        return _RATES[hparams.optimizer]
    return hparams.learning_rate


def learning_rate(hparams: TrainingSettings, step: int, halvings: int = 0) -> float:
    """Returns the rate of the update from `step` to `step + 1`.

    Args:
      hparams: the settings of the run.
      step: updates made so far.
      halvings: how often dev BLEU has not risen for long enough (`plateau`).
    """
    factor = _warmup(hparams, step) * _decay(hparams, step)
    if hparams.decay_scheme == "plateau":
        factor *= 0.5**halvings
    return base_rate(hparams) * factor


def _warmup(hparams: OptimizerSettings, step: int) -> float:
    """Returns the warm-up's factor: `0.01^((w - step) / w)` (t2t), or `(step + 1) / w` (linear)."""
    warmup = hparams.warmup_steps
    if step >= warmup:
        return 1.0
    if hparams.warmup_scheme == "linear":
        return (step + 1) / warmup
    return 0.01 ** ((warmup - step) / warmup)


def _decay(hparams: TrainingSettings, step: int) -> float:
    """Returns the decay's factor: halvings as in tensorflow/nmt, an inverse root or a cosine."""
    scheme, warmup = hparams.decay_scheme, hparams.warmup_steps
    steps = hparams.decay_steps or hparams.num_train_steps
    if hparams.decay_steps:
        step = min(step, steps)
    if scheme in _HALVINGS:
        share, times = _HALVINGS[scheme]
        start = int(steps * share)
        interval = max(1, (steps - start) // times)
        return 0.5 ** ((step - start) // interval) if step >= start else 1.0
    if step < warmup:
        return 1.0
    if scheme == "inverse_sqrt":  # Vaswani et al. 2017, equation 3
        return math.sqrt(max(1, warmup) / (step + 1))
    if scheme == "cosine":  # Loshchilov & Hutter 2017, equation 5, without restarts
        share = min(1.0, (step - warmup) / max(1, steps - warmup))
        return 0.5 * (1.0 + math.cos(math.pi * share))
    return 1.0


def make_optimizer(hparams: OptimizerSettings) -> tf.keras.optimizers.legacy.Optimizer:
    """Builds the optimizer.

    Keras's legacy optimizers are used because each update is one fused operation per weight.
    """
    rate = base_rate(hparams)
    if hparams.optimizer == "sgd":
        return tf.keras.optimizers.legacy.SGD(rate)
    if hparams.optimizer == "adam":
        return tf.keras.optimizers.legacy.Adam(rate, epsilon=1e-8)
    return tf.keras.optimizers.legacy.Adadelta(
        rate, rho=hparams.adadelta_rho, epsilon=hparams.adadelta_epsilon
    )
