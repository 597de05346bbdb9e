"""Key-value memory attention (Meng et al. 2018, section 3.2, equations 6-16).

The annotations twice: as keys, which every step rewrites, and as values, which stay.
"""

from __future__ import annotations

import tensorflow as tf

from tfmann.cells.base import per_row, per_sentence
from tfmann.cells.rewriting import RewritingCell, RewritingMemory
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import attention

NAME = "kvmematt"
SHARED_HPARAMS = ("two_gru",)

HPARAMS = {
    "num_rounds": {
        "default": 1,
        "minimum": 1,
        "maximum": 64,
        "help": "kvmematt cell: rounds R of asking and rewriting a step; the paper has 1 and 2.",
    },
}


class KVMemAttCell(RewritingCell):
    """R rounds on keys that are rewritten and values that are not."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the rounds."""
        super().__init__(hparams, annotation_width, weights, hparams.num_rounds)

    def _read(
        self, alignments: tf.Tensor, keys: tf.Tensor, memory: RewritingMemory
    ) -> tf.Tensor:
        """`sum_j a_j v_j` (13)."""
        del keys
        grouped = per_sentence(alignments, memory.values)
        return per_row(attention.read(grouped, memory.values))
