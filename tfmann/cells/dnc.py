"""A differentiable neural computer as a cell (Graves et al. 2016, Nature 538).

With `encoder_type` memory it is the pure MANN of Collier & Beel 2019, section 3.3.
"""

from __future__ import annotations

import tensorflow as tf

from tfmann.cells.dnc_memory import DNCMemory
from tfmann.cells.mann import MannCell
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams

NAME = "dnc"
SHARED_HPARAMS = ("own_memory",)

CLIP = 20.0


class DNCCell(MannCell):
    """A controller with a DNC's memory.

    The controller's states and the output are clipped to +-20, the memory never.
    """

    needs_annotations = False

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates controller, memory and output layer."""
        super().__init__(hparams, annotation_width, weights, DNCMemory)

    def clip(self, values: tf.Tensor) -> tf.Tensor:
        """To +-20."""
        return tf.clip_by_value(values, -CLIP, CLIP)
