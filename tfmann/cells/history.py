"""What is left of the source sentences before this one, for the cells that look back at them.

Both are records that stand in `Encoded.document`; `models.history` makes them.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class Summary(NamedTuple):
    """History of the form "summary" (Wang et al. 2017a)."""

    vector: tf.Tensor  # [B, U] d, zero where no sentence stands before


class Previous(NamedTuple):
    """History of the form "annotations" (Jean et al. 2017): the sentence right before this one."""

    annotations: tf.Tensor  # [B, S', D], zero at padding and where there is no such sentence
    mask: tf.Tensor  # [B, S'] float32, 1 at real positions
