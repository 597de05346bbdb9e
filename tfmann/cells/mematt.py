"""Interactive attention (Meng et al. 2016; "+MemAtt" in Meng et al. 2018): one memory for both."""

from __future__ import annotations

import tensorflow as tf

from tfmann.cells.rewriting import RewritingCell, RewritingMemory
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import attention

NAME = "mematt"
SHARED_HPARAMS = ("two_gru",)


class MemAttCell(RewritingCell):
    """One round, whose context is read from the memory that is rewritten."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the round."""
        super().__init__(hparams, annotation_width, weights, num_rounds=1)

    def _read(
        self, alignments: tf.Tensor, keys: tf.Tensor, memory: RewritingMemory
    ) -> tf.Tensor:
        """`sum_j a_j m_j`, before this step rewrites m."""
        del memory
        return attention.read(alignments[:, None], keys)[:, 0]
