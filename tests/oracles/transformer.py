"""The Transformer, pre-norm, teacher-forced, for one sentence; and with keys that are rewritten.

Vaswani et al. 2017 ("Attention Is All You Need"), sections 3.1 to 3.5, with the normalisation
before each part of a layer and once after the last layer (the variant of Xiong et al. 2020, "On
Layer Normalization in the Transformer Architecture"), not after each part:

    LN(x) = g (x - mean(x)) / sqrt(var(x) + 1e-6) + b, over the U numbers of one position;
    PE(p)_{2i} = sin(p / 10000^{2i/U}),  PE(p)_{2i+1} = cos(p / 10000^{2i/U});
    x = sqrt(U) y + PE(p), p = 0, 1, ..; where E differs from U, sqrt(U) y W_x + PE(p);
    attention of head h on keys k_j and values v_j, with the h-th U/H columns of q, k and v:
        a_h = softmax_j(q_h . k_{j,h} / sqrt(U/H)),  c_h = sum_j a_h(j) v_{j,h};

    an encoder's layer:  x <- x + W_o [c_1 .. c_H], where q, k and v are LN(x) W [U, 3U] and all
        positions are seen;  x <- x + FFN(LN(x)),  FFN(z) = W_2 relu(W_1 z + b_1) + b_2;
    a decoder's layer:  the same on the last `window` words, up to this one;
        x <- x + W_o [c_1 .. c_H], where q = LN(x) W_q, k_j = h_j W_k, v_j = h_j W_v;
        x <- x + FFN(LN(x));
    annotations h and outputs are LN(x) of the last layer.

Rewritten keys, in the decoder's last layer. K begins as the k_j above. With x after the attention
to K and z = LN(x), the FFN's input:

    w = softmax_j(z W'_q . k_j / sqrt(U));  F = sigmoid(z W_F + b_F);  G = tanh(z W_G);
    k_j <- k_j (1 - w_j F) + w_j G, which the next word's attention sees.

Weights of a layer (`layers`, from the bottom): self_norm_gain, self_norm_bias [U]; self_kernel
[U, 3U], columns ordered [q; k; v]; self_output_kernel W_o [U, U]; cross_norm_*; cross_query_kernel
[U, U], cross_key_kernel, cross_value_kernel [D, U], cross_output_kernel [U, U]; feed_norm_*;
feed_kernel W_1 [U, F], feed_bias, feed_output_kernel W_2 [F, U], feed_output_bias. Rewriting:
write_query_kernel W'_q, forget_kernel W_F, forget_bias b_F, add_kernel W_G. Of all layers:
output_norm_gain, output_norm_bias, and input_kernel W_x where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .addressing import softmax
from .recurrent import sigmoid

EPSILON = 1e-6


def normalize(weights: Mapping, name: str, x) -> np.ndarray:
    """LN of one position [U], with the gain and bias of that name."""
    mean = sum(x) / len(x)
    variance = sum((number - mean) ** 2 for number in x) / len(x)
    normal = (x - mean) / np.sqrt(variance + EPSILON)
    return weights[f"{name}_norm_gain"] * normal + weights[f"{name}_norm_bias"]


def position(p: int, units: int) -> np.ndarray:
    """PE(p) [U]."""
    encoding = np.zeros(units)
    for column in range(units):
        angle = p / 10000.0 ** ((column - column % 2) / units)
        encoding[column] = np.cos(angle) if column % 2 else np.sin(angle)
    return encoding


def inputs(weights: Mapping, embedding, p: int) -> np.ndarray:
    """x [U] of the word at position p."""
    if "input_kernel" in weights:
        embedding = embedding @ weights["input_kernel"]
    return np.sqrt(len(embedding)) * embedding + position(p, len(embedding))


def attend(query, keys, values, heads: int) -> tuple[np.ndarray, np.ndarray]:
    """The weights a [H, N] of every head and the contexts [c_1 .. c_H] [U], of N keys [N, U]."""
    width = len(query) // heads
    weights, contexts = [], []
    for head in range(heads):
        columns = slice(head * width, (head + 1) * width)
        a = softmax([query[columns] @ key[columns] / np.sqrt(width) for key in keys])
        weights.append(a)
        contexts.append(sum(a_j * value[columns] for a_j, value in zip(a, values)))
    return np.array(weights), np.concatenate(contexts)


def feed_forward(layer: Mapping, z) -> np.ndarray:
    """FFN(z) [U]."""
    hidden = np.maximum(z @ layer["feed_kernel"] + layer["feed_bias"], 0.0)
    return hidden @ layer["feed_output_kernel"] + layer["feed_output_bias"]


def encode(weights: Mapping, embeddings, heads: int) -> np.ndarray:
    """Annotations h [S, U] of a sentence's embeddings [S, E]."""
    xs = [inputs(weights, embedding, p) for p, embedding in enumerate(embeddings)]
    for layer in weights["layers"]:
        parts = [np.split(normalize(layer, "self", x) @ layer["self_kernel"], 3) for x in xs]
        keys, values = [k for _, k, _ in parts], [v for _, _, v in parts]
        after = []
        for x, (query, _, _) in zip(xs, parts):
            x = x + attend(query, keys, values, heads)[1] @ layer["self_output_kernel"]
            after.append(x + feed_forward(layer, normalize(layer, "feed", x)))
        xs = after
    return np.array([normalize(weights, "output", x) for x in xs])


def rewrite(layer: Mapping, z, keys) -> dict[str, np.ndarray]:
    """The write address `where` [S], `forget` F and `add` G [U], and the `keys` [S, U] after."""
    query = z @ layer["write_query_kernel"]
    where = softmax([query @ key / np.sqrt(len(key)) for key in keys])
    forget = sigmoid(z @ layer["forget_kernel"] + layer["forget_bias"])
    add = np.tanh(z @ layer["add_kernel"])
    after = [key * (1.0 - w * forget) + w * add for key, w in zip(keys, where)]
    return {"where": where, "forget": forget, "add": add, "keys": np.array(after)}


def decode(
    weights: Mapping, annotations, target_embeddings, heads: int, window: int, rewrites: bool
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given.

    Args:
        weights: see the module's docstring.
        annotations: h [S, D], real positions only.
        target_embeddings: y_{t-1} [T, E], beginning with that of `<s>`.
        heads: H.
        window: the last words that self-attention sees.
        rewrites: whether the last layer's keys are rewritten.

    Returns:
        `outputs` and `states`, both the outputs [T, U]; `alignments` [T, S], the mean over heads in
        the last layer. With rewriting `read_weights` (the alignments) and `write_weights`
        [T, 1, S], `erase_norm` |F| and `add_norm` |G| [T, 1], and `key_drift` [T], the norm of
        what a key has moved, mean over the positions.
    """
    source_keys = [
        np.array([h @ layer["cross_key_kernel"] for h in annotations])
        for layer in weights["layers"]
    ]
    first_keys = source_keys[-1]
    words: list = [([], []) for _ in weights["layers"]]  # keys and values of the words so far
    rows = []
    for time, embedding in enumerate(target_embeddings):
        x = inputs(weights, embedding, time)
        written = {}
        for number, layer in enumerate(weights["layers"]):
            keys, values = words[number]
            query, key, value = np.split(normalize(layer, "self", x) @ layer["self_kernel"], 3)
            keys.append(key)
            values.append(value)
            _, context = attend(query, keys[-window:], values[-window:], heads)
            x = x + context @ layer["self_output_kernel"]
            query = normalize(layer, "cross", x) @ layer["cross_query_kernel"]
            source_values = [h @ layer["cross_value_kernel"] for h in annotations]
            alignments, context = attend(query, source_keys[number], source_values, heads)
            x = x + context @ layer["cross_output_kernel"]
            z = normalize(layer, "feed", x)
            if rewrites and layer is weights["layers"][-1]:
                written = rewrite(layer, z, source_keys[number])
                source_keys[number] = written["keys"]
            x = x + feed_forward(layer, z)
        output = normalize(weights, "output", x)
        row: dict[str, Any] = {
            "outputs": output,
            "states": output,
            "alignments": alignments.mean(axis=0),
        }
        if rewrites:
            moved = [np.linalg.norm(k - k_0) for k, k_0 in zip(written["keys"], first_keys)]
            row.update(
                read_weights=[row["alignments"]], write_weights=[written["where"]],
                erase_norm=[np.linalg.norm(written["forget"])],
                add_norm=[np.linalg.norm(written["add"])], key_drift=sum(moved) / len(moved),
            )  # fmt: skip
        rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def layer_parameters(units: int, feed_forward: int, annotation: int = 0) -> int:
    """Counts the parameters of a layer; of a decoder's, which attends to annotations D wide."""
    own = 2 * units + 4 * units * units
    cross = 2 * units + 2 * units * units + 2 * annotation * units if annotation else 0
    feed = 2 * units + 2 * units * feed_forward + feed_forward + units
    return own + cross + feed


def rewriting_parameters(units: int) -> int:
    """Counts what rewriting adds: W'_q, W_F, W_G and b_F."""
    return 3 * units * units + units
