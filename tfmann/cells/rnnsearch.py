"""RNNSearch with two GRUs a step (Bahdanau et al. 2015; the baseline of Meng 2018 and Tu 2018)."""

from __future__ import annotations

import tensorflow as tf

from tfmann.cells.additive import AdditiveCell, AdditiveMemory, AdditiveState
from tfmann.cells.base import StepOutput, per_row

NAME = "rnnsearch"
SHARED_HPARAMS = ("two_gru",)


class RNNSearchCell(AdditiveCell):
    """`s_t = GRU2(q_t, c_t)`: nothing beside the context."""

    def step(
        self, inputs: tf.Tensor, state: AdditiveState, memory: AdditiveMemory
    ) -> StepOutput:
        """Query, address, context, state."""
        query = self.query(inputs, state, memory)
        alignments, context = memory.source.answer(query)
        hidden = memory.state_gru.step(context, query)
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=AdditiveState(hidden),
            diagnostics={"alignments": per_row(alignments)},
        )
