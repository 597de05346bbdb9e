"""Attention to a memory that every step rewrites (Meng et al. 2018, section 3.2).

The memory starts as the annotations; rewritten, it says what is left to be translated. Equation
numbers are the paper's.
"""

from __future__ import annotations

import abc
import re
from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.base import Encoded, StepOutput, per_row, per_sentence
from tfmann.cells.recurrent import gru_step, product
from tfmann.cells.two_gru import GRU, TwoGRUCell, make_gru
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention, writing


class Round(NamedTuple):
    """The weights of one round; every round has its own."""

    query_kernel: tf.Tensor  # [U, A] of the read address
    score_vector: tf.Tensor  # [A]
    write_query_kernel: tf.Tensor  # [U, A] of the write address
    write_score_vector: tf.Tensor  # [A]
    memory_kernel: tf.Tensor  # [D, A] of the read address
    write_memory_kernel: tf.Tensor  # [D, A]
    state_gru: GRU
    forget_kernel: tf.Tensor  # [U, D] W_F
    add_kernel: tf.Tensor  # [U, D] W_A


class Step(NamedTuple):
    """What a round needs of its kernels: joined where one product does for two."""

    query_kernel: tf.Tensor  # [U, A]
    score_vector: tf.Tensor  # [A]
    write_score_vector: tf.Tensor  # [A]
    memory_kernels: tf.Tensor  # [D, 2A] both addresses look at the same keys
    state_gru: GRU
    after_kernels: tf.Tensor  # [U, A + 2D] write query, forget, add: all of s~


class RewritingState(NamedTuple):
    """What one step leaves for the next; both belong to the hypothesis."""

    hidden: tf.Tensor  # [B, U] s_{t-1}
    keys: tf.Tensor  # [B, S, D] K_{t-1}


class RewritingMemory(NamedTuple):
    """What every step reads."""

    values: tf.Tensor  # [B, S, D] the annotations
    mask: tf.Tensor  # [B, 1, S]
    query_recurrent: tf.Tensor  # [U, 3U] GRU1
    rounds: tuple[Step, ...]


class RewritingCell(TwoGRUCell):
    """R rounds a step of: address by the keys (12), read (13), GRU_r (9), rewrite the keys.

    The write address is a network of its own (15), and every round has its own weights: Table 1's
    counts (55.03M, and 58.18M for two rounds) decide it. FORGET and ADD are both sigmoids without a
    bias, as printed (14, 16).
    """

    def __init__(
        self, hparams: HParams, annotation_width: int, weights: Weights, num_rounds: int
    ):
        """Creates the weights of R rounds."""
        super().__init__(hparams, annotation_width, weights)
        scopes = [weights.scope(f"round_{number}") for number in range(1, num_rounds + 1)]
        self.rounds = [self._make_round(scope) for scope in scopes]

    def _make_round(self, weights: Weights) -> Round:
        units, width, depth = self.hparams.num_units, self.annotation_width, self.depth
        return Round(
            query_kernel=weights.matrix("query_kernel", [units, depth]),
            memory_kernel=weights.matrix("memory_kernel", [width, depth]),
            score_vector=weights.matrix("score_vector", [depth]),
            state_gru=make_gru(weights.scope("state_gru"), width, units),
            write_query_kernel=weights.matrix("write_query_kernel", [units, depth]),
            write_memory_kernel=weights.matrix("write_memory_kernel", [width, depth]),
            write_score_vector=weights.matrix("write_score_vector", [depth]),
            forget_kernel=weights.matrix("forget_kernel", [units, width]),
            add_kernel=weights.matrix("add_kernel", [units, width]),
        )

    @staticmethod
    def ancestor(name: str) -> str:
        """Every round's read address and GRU start as RNNSearch's; what writes is new."""
        return re.sub(r"round_\d+/(?!write_|forget_|add_)", "", name)

    def initial_state(self, encoded: Encoded) -> RewritingState:
        """s_0; the keys are the annotations."""
        return RewritingState(self.initial_hidden(encoded), encoded.annotations)

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> RewritingMemory:
        """Joins and casts the kernels; nothing of the keys holds for longer than a round."""

        def joined(one: Round) -> Step:
            after = [one.write_query_kernel, one.forget_kernel, one.add_kernel]
            both = [one.memory_kernel, one.write_memory_kernel]
            return Step(
                query_kernel=tf.cast(one.query_kernel, dtype),
                score_vector=one.score_vector,
                write_score_vector=one.write_score_vector,
                memory_kernels=tf.cast(tf.concat(both, axis=1), dtype),
                state_gru=one.state_gru.cast(dtype),
                after_kernels=tf.cast(tf.concat(after, axis=1), dtype),
            )

        return RewritingMemory(
            values=encoded.annotations,
            mask=encoded.mask[:, None],
            query_recurrent=tf.cast(self.query_gru.recurrent, dtype),
            rounds=tuple(joined(one) for one in self.rounds),
        )

    def step(
        self, inputs: tf.Tensor, state: RewritingState, memory: RewritingMemory
    ) -> StepOutput:
        """Query, then the rounds; state, context and alignments are the last round's."""
        recurrent = product(state.hidden, memory.query_recurrent)
        (query,) = gru_step(inputs, recurrent, (state.hidden,))
        keys, seen = state.keys, []
        for one in memory.rounds:
            context, hidden, keys, shown = self._round(one, query, keys, memory)
            seen.append(shown)
        diagnostics = {name: tf.stack([shown[name] for shown in seen], axis=1) for name in seen[0]}
        diagnostics["alignments"] = seen[-1]["read_weights"]
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=RewritingState(hidden, keys),
            diagnostics=diagnostics,
        )

    def _round(
        self, one: Step, query: tf.Tensor, keys: tf.Tensor, memory: RewritingMemory
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
        """Context `[B, D]`, s~ `[B, U]`, the new keys, and what can be looked at."""
        to_read, to_write = tf.split(product(keys, one.memory_kernels), 2, axis=-1)
        asked = product(query, one.query_kernel)
        alignments = self._address(asked, to_read, one.score_vector, memory)  # (12)
        context = self._read(alignments, keys, memory)  # (13)
        hidden = one.state_gru.step(context, query)  # (9)
        width = self.annotation_width
        asked, forget, add = tf.split(
            product(hidden, one.after_kernels), [self.depth, width, width], axis=-1
        )
        forget, add = tf.sigmoid(forget), tf.sigmoid(add)
        written = self._address(asked, to_write, one.write_score_vector, memory)  # (15)
        rewritten = writing.erase_and_add(
            keys, written[:, None], forget[:, None], add[:, None]
        )  # (14, 16)
        return context, hidden, rewritten, {
            "read_weights": alignments,
            "write_weights": written,
            "erase_norm": addressing.norm(forget)[:, None],
            "add_norm": addressing.norm(add)[:, None],
            "key_drift": self._drift(rewritten, memory)[:, None],
        }

    def _address(
        self, asked: tf.Tensor, keys: tf.Tensor, vector: tf.Tensor, memory: RewritingMemory
    ) -> tf.Tensor:
        """`softmax_i v . tanh(W q + U k_i)`: queries `[B, A]`, keys `[B, S, A]` to `[B, S]`."""
        scores = attention.additive_scores(asked[:, None], keys, vector)[:, 0]
        grouped = per_sentence(scores, memory.values)
        return per_row(addressing.masked_softmax(grouped, memory.mask))

    @abc.abstractmethod
    def _read(
        self, alignments: tf.Tensor, keys: tf.Tensor, memory: RewritingMemory
    ) -> tf.Tensor:
        """The context `[B, D]` of alignments `[B, S]`."""

    def _drift(self, keys: tf.Tensor, memory: RewritingMemory) -> tf.Tensor:
        """Mean length over a sentence's positions of what was changed in its keys: `[B]`."""
        grouped = per_sentence(keys, memory.values)  # [B, K, S, D]
        moved = addressing.norm(grouped - memory.values[:, None])
        real = tf.reduce_sum(memory.mask, axis=-1)  # [B, 1]
        return tf.reshape(tf.reduce_sum(moved * memory.mask, axis=-1) / real, [-1])
