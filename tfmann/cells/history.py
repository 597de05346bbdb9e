"""Records of the source sentences before this one, for the cells that read them.

`models.history_encoder` makes them; they are in `EncoderOutput.document`.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Summary(NamedTuple):
    """History of the form "summary" (Wang et al. 2017a)."""

    vector: tf.Tensor  # [B, U] d, zero without an earlier sentence


class Previous(NamedTuple):
    """History of the form "annotations" (Jean et al. 2017): the sentence right before this one."""

    annotations: tf.Tensor  # [B, S', D], zero at padding and without such a sentence
    mask: tf.Tensor  # [B, S'] float32, 1 at real positions
