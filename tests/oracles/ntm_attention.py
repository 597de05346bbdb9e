"""The attentional decoder with NTM-style attention, teacher-forced, for one sentence.

Collier & Beel, section 3.1, equations 11 to 15. As luong.py, with the content score
replaced by the addressing of a Neural Turing Machine over the source annotations.

Weights: `layers` and `memory_kernel` (here W_a, shared by the heads) as in luong.py, and
    head_kernel: [U, R * (U + 1 + 1 + J + 1)], per head its key U, strength 1, gate 1,
        shift J, sharpening 1.
    head_bias: [R * (U + 1 + 1 + J + 1)].
    attention_kernel: [R*D + U, U], rows ordered [c of head 1; ...; c of head R; h].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from . import scores
from .addressing import circular_shift, interpolate, sharpen, softmax, softplus
from .recurrent import sigmoid, stack_step

HEAD_CLIP = 20.0


class Head(NamedTuple):
    """The parameters of one read head at one step."""

    key: np.ndarray  # k [U]
    strength: float  # beta > 0
    gate: float  # g in [0, 1]
    shift: np.ndarray  # s [J], a distribution
    sharpening: float  # gamma > 1


def split_heads(raw, num_heads: int, units: int) -> list[Head]:
    """Cuts the output of the head layer [R * (U+1+1+J+1)] into the parameters of R heads."""
    heads = []
    for values in np.split(np.clip(raw, -HEAD_CLIP, HEAD_CLIP), num_heads):
        heads.append(
            Head(
                key=np.tanh(values[:units]),
                strength=float(softplus(values[units])),
                gate=float(sigmoid(values[units + 1])),
                shift=softmax(values[units + 2 : -1]),
                sharpening=1.0 + float(softplus(values[-1])),
            )
        )
    return heads


def address(
    head: Head, keys, previous, kind: str = "dot", gain: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """One step of a head: its content address [S] and its read weights [S].

    `keys` are the rows W_a h_s [S, U], `previous` the head's w_{t-1} [S]. With `kind` 'scaled_dot'
    or 'cosine' the product k . W_a h_s of (12) is that of scores.py, with its gain.
    """
    length = len(keys)
    content = softmax(head.strength * scores.dot(head.key, keys, kind, gain))  # (12)
    gated = interpolate(head.gate, content, previous)  # (13)
    shifted = circular_shift(gated, head.shift, length)  # (14)
    return content, sharpen(shifted, head.sharpening, length)  # (15)


def decode(
    weights: Mapping,
    source_annotations,
    initial_states: Sequence,
    target_embeddings,
    num_heads: int = 1,
    unit: str = "lstm",
    tanh: bool = False,
    kind: str = "dot",
    scale: float = 1.0,
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given.

    Arguments as of `luong.decode`; there is no `scaled`, because the strength beta
    takes the place of the scale g. With another `kind` than 'dot' both are used. What h adds
    to the biases of strength, gate, shift and sharpening is multiplied by `scale`.

    Returns:
        `outputs` [T, U]; `alignments` [T, S], the mean over the heads of `read_weights`
        [T, R, S]; `content_weights` [T, R, S]; `interpolation_gate` [T, R];
        `shift_kernel` [T, R, J]; `sharpening` [T, R].
    """
    annotations = np.asarray(source_annotations, dtype=np.float64)
    length = len(annotations)
    keys = np.array([annotation @ weights["memory_kernel"] for annotation in annotations])
    gain = 1.0 if kind == "dot" else weights["attention_scale"]
    states = list(initial_states)
    attention_vector = np.zeros(np.shape(weights["attention_kernel"])[1])  # a_{-1} = 0
    # w_{-1}: every head begins on the first source position.
    read_weights = [np.eye(length)[0] for _ in range(num_heads)]
    rows = []
    for x in target_embeddings:
        h, states = stack_step(
            unit, weights["layers"], np.concatenate([x, attention_vector]), states
        )
        raw = np.concatenate(
            [
                np.concatenate([from_h[: len(h)], scale * from_h[len(h) :]])
                for from_h in np.split(h @ weights["head_kernel"], num_heads)
            ]
        )
        raw = raw + weights["head_bias"]
        heads = split_heads(raw, num_heads, units=len(h))
        content_weights, contexts = [], []
        for r, head in enumerate(heads):
            content, read_weights[r] = address(head, keys, read_weights[r], kind, gain)
            content_weights.append(content)
            contexts.append(sum(read_weights[r][s] * annotations[s] for s in range(length)))
        attention_vector = np.concatenate([*contexts, h]) @ weights["attention_kernel"]
        if tanh:
            attention_vector = np.tanh(attention_vector)
        rows.append(
            {
                "outputs": attention_vector,
                "alignments": sum(read_weights) / num_heads,
                "read_weights": np.array(read_weights),
                "content_weights": np.array(content_weights),
                "interpolation_gate": np.array([head.gate for head in heads]),
                "shift_kernel": np.array([head.shift for head in heads]),
                "sharpening": np.array([head.sharpening for head in heads]),
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
