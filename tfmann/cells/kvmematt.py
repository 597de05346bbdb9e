"""Attention to a memory that every step rewrites (Meng et al. 2018, section 3.1).

The memory starts as the annotations; rewritten at every step, it keeps a history of the attention.
KVMemAtt reads fixed values through keys that are rewritten; MemAtt (Meng et al. 2016, interactive
attention) reads the memory that it rewrites. Equation numbers are those of the 2018 paper.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.attention import AdditiveAttention
from tfmann.layers.beams import merge_beams, split_beams
from tfmann.layers.conditional_gru import MeanStart, Readout
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import GRUCell, product
from tfmann.memory import access


class KVMemAttState(NamedTuple):
    """State between steps; both tensors belong to the hypothesis."""

    hidden: tf.Tensor  # [B, U] s_{t-1}
    keys: tf.Tensor  # [B, S, D] K_{t-1}


class KVMemAttSource(NamedTuple):
    """Constants of a step."""

    values: tf.Tensor  # [B, S, D] V, the annotations
    mask: tf.Tensor  # [B, 1, S]


class Round(tf.Module):
    """Address, read, update the state, rewrite the keys; every round has its own weights.

    The write address is a network of its own (15): the parameter counts of Table 1 require both
    (55.03M, and 58.18M for two rounds). FORGET and ADD are sigmoids without a bias, as printed.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates both addresses, GRU_r, W_F `[U, D]` and W_A `[U, D]`."""
        super().__init__(name="round")
        units, width = hparams.num_units, annotation_width
        depth = hparams.attention_width
        self.read_address = AdditiveAttention(units, width, depth, weights)
        self.write_address = AdditiveAttention(units, width, depth, weights, "write_")
        self.state_gru = GRUCell(width, units, weights.scope("state_gru"))
        self.forget_kernel = weights.matrix("forget_kernel", [units, width])
        self.add_kernel = weights.matrix("add_kernel", [units, width])

    def __call__(
        self, query: tf.Tensor, keys: tf.Tensor, source: KVMemAttSource, read_keys: bool
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
        """Runs one round.

        Args:
          query: `[B*K, U]` q_t.
          keys: `[B*K, S, D]` K^{r-1}.
          source: the values and the mask.
          read_keys: read the context from the keys (MemAtt), not from the values (KVMemAtt).

        Returns:
          the state `[B*K, U]`, the context `[B*K, D]`, K^r, and diagnostics.
        """
        read, write = self.read_address, self.write_address
        read_weights = read.per_hypothesis(query, read.keys(keys), source.mask)  # (12) [B, K, S]
        if read_keys:
            context = (merge_beams(read_weights)[:, None] @ keys)[:, 0]
        else:
            context = merge_beams(read_weights @ source.values)  # (13)
        hidden = self.state_gru(context, query)  # (9)
        write_weights = write.per_hypothesis(hidden, write.keys(keys), source.mask)  # (15)
        write_weights = merge_beams(write_weights)
        forget = tf.sigmoid(product(hidden, self.forget_kernel))  # (14)
        add = tf.sigmoid(product(hidden, self.add_kernel))  # (16)
        new_keys = access.erase_and_add(  # (14, 16)
            keys, weights=write_weights[:, None], erase=forget[:, None], add=add[:, None]
        )
        drift = access.drift(split_beams(new_keys, source.mask), source.values, source.mask)
        diagnostics = {
            "read_weights": merge_beams(read_weights),
            "write_weights": write_weights,
            "erase_norm": access.norm(forget)[:, None],
            "add_norm": access.norm(add)[:, None],
            "key_drift": merge_beams(drift)[:, None],
        }
        return hidden, context, new_keys, diagnostics


class KVMemAttCell(DecoderCell):
    """`q_t = GRU(s_{t-1}, y_{t-1})` (6), then R rounds; s_t, c_t and a_t are the last one's."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates the map to s_0, GRU, the rounds and the readout; MemAtt has one round."""
        super().__init__(hparams, annotation_width, weights)
        self.reads_keys = hparams.cell == "mematt"
        count = 1 if self.reads_keys else hparams.num_rounds
        scopes = [weights.scope(f"round_{number}") for number in range(1, count + 1)]
        self.start = MeanStart(hparams, annotation_width, weights)
        self.query_gru = GRUCell(
            hparams.embedding_width, hparams.num_units, weights.scope("query_gru")
        )
        self.rounds = [Round(hparams, annotation_width, scope) for scope in scopes]
        self.deep_output = Readout(hparams, annotation_width, weights)
        self.output_width = hparams.num_units + annotation_width
        self.readout_width = self.deep_output.width

    @staticmethod
    def ancestor(name: str) -> str:
        """Maps the read address and the GRU of every round to those of RNNSearch."""
        return re.sub(r"round_\d+/(?!write_|forget_|add_)", "", name)

    def initial_state(self, encoded: EncoderOutput) -> KVMemAttState:
        """Returns s_0, and the annotations as keys."""
        start = self.start(encoded.annotations, encoded.length)
        return KVMemAttState(start, encoded.annotations)

    def prepare(self, encoded: EncoderOutput) -> KVMemAttSource:
        """Returns the values; the keys change at every step, so they are projected there."""
        return KVMemAttSource(encoded.annotations, encoded.mask[:, None])

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects words `[..., E]` to their part of the GRU's pre-activations, `[..., 3U]`."""
        return self.query_gru.project(masks.dropout("input", self.hparams.dropout, embedded))

    def step(self, inputs: tf.Tensor, state: KVMemAttState, source: KVMemAttSource) -> StepOutput:
        """Computes q_t, then the rounds."""
        query = self.query_gru.from_projected(inputs, state.hidden)
        keys, of_rounds = state.keys, []
        for one_round in self.rounds:
            hidden, context, keys, diagnostics = one_round(query, keys, source, self.reads_keys)
            of_rounds.append(diagnostics)
        stacked: dict[str, Any] = {
            name: tf.stack([values[name] for values in of_rounds], axis=1) for name in of_rounds[0]
        }
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=KVMemAttState(hidden, keys),
            diagnostics={**stacked, "alignments": of_rounds[-1]["read_weights"]},
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns `tanh(W_s s_t + W_y y_{t-1} + W_c c_t)` with dropout: `[M, R]`."""
        readout = self.deep_output(outputs, embedded)
        return masks.dropout("readout", self.hparams.readout_dropout, readout)
