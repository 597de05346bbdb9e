"""A neural Turing machine as a cell (Graves et al. 2014, arXiv:1410.5401; Collier & Beel 2019).

With `encoder_type` memory it is the pure MANN of Collier & Beel 2019, section 3.3.
"""

from __future__ import annotations

from tfmann.cells.mann import MannCell
from tfmann.cells.ntm_memory import NTMMemory
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams

NAME = "ntm"
SHARED_HPARAMS = ("own_memory", "ntm_memory")


class NTMCell(MannCell):
    """A controller with an NTM's memory."""

    needs_annotations = False

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates controller, memory and output layer."""
        super().__init__(hparams, annotation_width, weights, NTMMemory)
