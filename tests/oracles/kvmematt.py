"""KVMemAtt and MemAtt, teacher-forced, for one sentence.

Meng et al. 2018 ("Neural Machine Translation with Key-Value Memory-Augmented
Attention"), section 3. Keys K and values V both begin as the annotations h; R rounds a step:

    q_t = GRU1(s_{t-1}, y_{t-1});                                       (6)
    in round r, with that round's own weights, K being what round r-1 left:
        a = softmax_j(v^T tanh(W_a q_t + U_a k_j));                     (7, 11, 12)
        c = sum_j a_j v_j;                                              (8, 13)
        s = GRU2(q_t, c);                                               (9)
        w = softmax_j(v_w^T tanh(W_w s + U_w k_j));                     (15)
        k_i <- k_i (1 - w_i F), F = sigmoid(W_F s);                     (14)
        k_i <- k_i + w_i A, A = sigmoid(W_A s);                         (16)
    s_t, c_t, a_t are the last round's, whose keys the next step begins with;
    output = tanh(W_s s_t + W_y y_{t-1} + W_c c_t);  s_0 = tanh(W_init mean_j h_j + b).

Every round asks with q_t. MemAtt (the interactive attention of Meng et al. 2016, as the
2018 paper describes it) has one round and one memory: c is read from K, before the write.

Weights:
    query_gru: GRU1, `kernel` [E, 3U], `recurrent_kernel` [U, 3U], `bias` [3U].
    readout_kernel: [U + E + D, O], rows ordered [s; y; c]; no bias.
    initial_kernel: W_init [D, U];  initial_bias: b [U].
    rounds: R dictionaries, of round_1, round_2, ..., each of
        query_kernel: W_a [U, A];  memory_kernel: U_a [D, A];  score_vector: v [A].
        state_gru: GRU2, `kernel` [D, 3U], `recurrent_kernel` [U, 3U], `bias` [3U].
        write_query_kernel: W_w [U, A];  write_memory_kernel: U_w [D, A];
        write_score_vector: v_w [A].
        forget_kernel: W_F [U, D];  add_kernel: W_A [U, D]; no biases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from . import rnnsearch
from .recurrent import sigmoid, unit_step


class Round(NamedTuple):
    """Reads and results of one round."""

    alignment: np.ndarray  # [S] a
    context: np.ndarray  # [D] c
    state: np.ndarray  # [U] s
    write_weights: np.ndarray  # [S] w
    forget: np.ndarray  # [D] F
    add: np.ndarray  # [D] A
    keys: np.ndarray  # [S, D] after the write


def write_address(weights: Mapping, state, keys) -> np.ndarray:
    """w [S], equation 15: the additive address of its own network, queried with s [U]."""
    names = "query_kernel", "memory_kernel", "score_vector"
    alignment, _ = rnnsearch.attend({name: weights[f"write_{name}"] for name in names}, state, keys)
    return alignment


def write(keys, write_weights, forget, add) -> np.ndarray:
    """The keys [S, D] after FORGET (14) and then ADD (16)."""
    written = np.zeros(np.shape(keys))
    for i, weight in enumerate(write_weights):
        remaining = keys[i] * (1.0 - weight * forget)
        written[i] = remaining + weight * add
    return written


def access(weights: Mapping, query, keys, values) -> Round:
    """One round: address, read, intermediate state, update.

    Args:
        weights: of this round, see the module's docstring.
        query: q_t [U].
        keys: K [S, D] as the round before left them.
        values: V [S, D]; for MemAtt the keys.
    """
    alignment, _ = rnnsearch.attend(weights, query, keys)
    context = sum(weight * value for weight, value in zip(alignment, values))
    state, _ = unit_step("gru", context, query, weights["state_gru"])
    write_weights = write_address(weights, state, keys)
    forget = sigmoid(state @ weights["forget_kernel"])
    add = sigmoid(state @ weights["add_kernel"])
    written = write(keys, write_weights, forget, add)
    return Round(alignment, context, state, write_weights, forget, add, written)


def decode(
    weights: Mapping, annotations, target_embeddings, single_memory: bool = False
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given.

    Args:
        weights: see the module's docstring.
        annotations: h [S, D], real positions only.
        target_embeddings: y_{t-1} [T, E], beginning with that of `<s>`.
        single_memory: MemAtt, whose contexts are read from the keys; of one round.

    Returns:
        `outputs` [T, O], the readouts before dropout and softmax; `states` s_t [T, U];
        `contexts` c_t [T, D]; `alignments` a_t [T, S], the last round's. Of every round
        `round_alignments` and `write_weights` [T, R, S], `forget_norms` |F| and
        `add_norms` |A| [T, R]. `keys` [T, S, D] after each step; `key_drift` [T], the
        norm of what a key has moved from its annotation, mean over the positions.
    """
    if single_memory and len(weights["rounds"]) != 1:
        raise ValueError(f"{len(weights['rounds'])} rounds: MemAtt has one")
    annotations = np.asarray(annotations, dtype=np.float64)
    state, keys = rnnsearch.initial_state(weights, annotations), annotations
    rows = []
    for y in target_embeddings:
        query, _ = unit_step("gru", y, state, weights["query_gru"])
        rounds = []
        for round_weights in weights["rounds"]:
            values = keys if single_memory else annotations
            rounds.append(access(round_weights, query, keys, values))
            keys = rounds[-1].keys
        state, context = rounds[-1].state, rounds[-1].context
        readout = np.tanh(np.concatenate([state, y, context]) @ weights["readout_kernel"])
        rows.append(describe_step(readout, rounds, annotations))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def describe_step(readout, rounds: list[Round], annotations) -> dict:
    """The quantities that `decode` returns, of one step."""
    last = rounds[-1]
    moved = [np.linalg.norm(key - h) for key, h in zip(last.keys, annotations)]
    return {
        "outputs": readout,
        "states": last.state,
        "contexts": last.context,
        "alignments": last.alignment,
        "round_alignments": [result.alignment for result in rounds],
        "write_weights": [result.write_weights for result in rounds],
        "forget_norms": [np.linalg.norm(result.forget) for result in rounds],
        "add_norms": [np.linalg.norm(result.add) for result in rounds],
        "keys": last.keys,
        "key_drift": sum(moved) / len(moved),
    }


def gru_parameters(inputs: int, units: int) -> int:
    """Of a GRU with one bias a gate."""
    return 3 * (inputs * units + units * units + units)


def parameter_parts(
    embedding: int,
    units: int,
    annotation: int,
    attention: int,
    readout: int,
    source_vocabulary: int,
    target_vocabulary: int,
    rounds: int,
) -> dict[str, int]:
    """Counts the parameters of the parts of a whole model; `rounds` 0 is RNNSearch.

    The encoder is a GRU each way, U wide; both tables of embeddings are E wide; the
    projection to the vocabulary has a bias.
    """
    address = units * attention + annotation * attention + attention
    reads = max(1, rounds)  # RNNSearch has a read address and a second GRU too
    return {
        "embeddings": (source_vocabulary + target_vocabulary) * embedding,
        "encoder": 2 * gru_parameters(embedding, units),
        "initial_state": annotation * units + units,
        "query_gru": gru_parameters(embedding, units),
        "read_addresses": reads * address,
        "state_grus": reads * gru_parameters(annotation, units),
        "write_addresses": rounds * address,
        "forget_and_add": rounds * 2 * units * annotation,
        "readout": (units + embedding + annotation) * readout,
        "projection": (readout + 1) * target_vocabulary,
    }


def count_parameters(**sizes: int) -> int:
    """The sum of `parameter_parts`.

    With E = U = D = A = O = 512 and 30,000 words on both sides it gives Table 1: 53.98M
    without rounds, 55.03M with one (MemAtt and KVMemAtt-R1), 58.18M with two.
    """
    return sum(parameter_parts(**sizes).values())
