"""The interface vector of a DNC's memory, and its parts (Graves et al. 2016, Nature 538, Methods).

Letters are the paper's: xi the interface vector, k keys, beta strengths, e erase and v write
vectors, f, g^a and g^w gates, pi read modes. The masks mu and the sharpness s^f and s^b are those
of Csordás & Schmidhuber 2019 (arXiv:1904.10278), the normalisation that of Franke et al. 2018
(arXiv:1807.02658).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.config import DNCOptions
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product

_NORM_EPSILON = 1e-6  # of the variance


class Interface(NamedTuple):
    """The interface vector xi_t, in its parts and in their order."""

    read_keys: tf.Tensor  # [B, R, W] k^r
    read_strengths: tf.Tensor  # [B, R, 1] beta^r
    write_keys: tf.Tensor  # [B, H, W] k^w
    write_strengths: tf.Tensor  # [B, H, 1] beta^w
    erase: tf.Tensor  # [B, H, W] e
    write_vectors: tf.Tensor  # [B, H, W] v
    free_gates: tf.Tensor  # [B, R, 1] f
    allocation_gates: tf.Tensor  # [B, H, 1] g^a
    write_gates: tf.Tensor  # [B, H, 1] g^w
    read_modes: tf.Tensor | None = None  # [B, R, 1 + 2H] pi, without `dnc_content_only`
    read_masks: tf.Tensor | None = None  # [B, R, W] mu^r, with `dnc_masking`
    write_masks: tf.Tensor | None = None  # [B, H, W] mu^w, with `dnc_masking`
    forward_sharpness: tf.Tensor | None = None  # [B, R, 1] s^f, with `dnc_sharp_links`
    backward_sharpness: tf.Tensor | None = None  # [B, R, 1] s^b, with `dnc_sharp_links`


class DNCInterface(tf.keras.layers.Layer):
    """`xi_t = W h_t + b`, split into its parts, each squashed into its range."""

    def __init__(self, hparams: DNCOptions, units: int, weights: VariableFactory):
        """Creates W `[U, P]` and b `[P]`, P as in `part_shapes`; the norm's gain and bias `[P]`."""
        super().__init__(name="interface")
        self._shapes = part_shapes(hparams)
        self.mask_floor = hparams.dnc_mask_floor
        numbers = sum(heads * size for heads, size in self._shapes.values())
        self.kernel = weights.matrix("interface_kernel", [units, numbers])
        self.bias = weights.constant("interface_bias", np.zeros(numbers))
        self.is_normalized = hparams.dnc_layer_norm
        if self.is_normalized:
            self.norm_gain = weights.constant("interface_norm_gain", np.ones(numbers))
            self.norm_bias = weights.constant("interface_norm_bias", np.zeros(numbers))

    def emit(self, hidden: tf.Tensor) -> Interface:
        """Maps h_t `[B, U]` to the parts of xi_t."""
        vector = product(hidden, self.kernel) + self.bias
        if self.is_normalized:
            vector = self.norm_gain * _standardized(vector) + self.norm_bias
        sizes = [heads * size for heads, size in self._shapes.values()]
        parts = tf.split(vector, sizes, axis=-1)
        raw = Interface(
            **{
                name: tf.reshape(part, [-1, *shape])
                for part, (name, shape) in zip(parts, self._shapes.items())
            }
        )
        interface = raw._replace(
            read_strengths=_oneplus(raw.read_strengths),
            write_strengths=_oneplus(raw.write_strengths),
            erase=tf.sigmoid(raw.erase),
            free_gates=tf.sigmoid(raw.free_gates),
            allocation_gates=tf.sigmoid(raw.allocation_gates),
            write_gates=tf.sigmoid(raw.write_gates),
        )
        if raw.read_modes is not None:
            interface = interface._replace(read_modes=tf.nn.softmax(raw.read_modes))
        if raw.read_masks is not None:
            interface = interface._replace(
                read_masks=self._mask(raw.read_masks), write_masks=self._mask(raw.write_masks)
            )
        if raw.forward_sharpness is not None:
            interface = interface._replace(
                forward_sharpness=_oneplus(raw.forward_sharpness),
                backward_sharpness=_oneplus(raw.backward_sharpness),
            )
        return interface

    def _mask(self, raw: tf.Tensor) -> tf.Tensor:
        """Computes mu, between its floor and 1."""
        return self.mask_floor + (1.0 - self.mask_floor) * tf.sigmoid(raw)


def part_shapes(hparams: DNCOptions) -> dict[str, tuple[int, int]]:
    """Returns (heads, numbers per head) of each part of xi_t, in their order.

    They are P = RW + 3HW + 2R + 3H + R(1 + 2H) numbers; R(1 + 2H) fewer with `dnc_content_only`,
    (R + H)W more with `dnc_masking`, and 2R more with `dnc_sharp_links`.
    """
    r, h, w = hparams.read_heads, hparams.write_heads, hparams.memory_unit_size
    shapes = {
        "read_keys": (r, w),
        "read_strengths": (r, 1),
        "write_keys": (h, w),
        "write_strengths": (h, 1),
        "erase": (h, w),
        "write_vectors": (h, w),
        "free_gates": (r, 1),
        "allocation_gates": (h, 1),
        "write_gates": (h, 1),
    }
    if not hparams.dnc_content_only:
        shapes.update(read_modes=(r, 1 + 2 * h))
    if hparams.dnc_masking:
        shapes.update(read_masks=(r, w), write_masks=(h, w))
    if hparams.dnc_sharp_links:
        shapes.update(forward_sharpness=(r, 1), backward_sharpness=(r, 1))
    return shapes


def _standardized(values: tf.Tensor) -> tf.Tensor:
    """Gives each row of values `[B, P]` the mean 0 and the variance 1."""
    deviations = values - tf.reduce_mean(values, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(deviations), axis=-1, keepdims=True)
    return deviations / tf.sqrt(variance + _NORM_EPSILON)


def _oneplus(values: tf.Tensor) -> tf.Tensor:
    return 1 + tf.nn.softplus(values)
