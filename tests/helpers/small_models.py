"""Small models with large weights, their weights as the oracles want them, and small batches."""

import re
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann.config import HParams
from tfmann.data.batching import make_batch
from tfmann.models.seq2seq import Seq2Seq

SOURCE_SIZE, TARGET_SIZE = 23, 19

# every cell with the variants that change its equations
VARIANTS: dict[str, dict[str, Any]] = {
    "luong": {"cell": "luong"},
    "luong-gru": {"cell": "luong", "unit_type": "gru", "attention": "luong"},
    "luong-tanh": {"cell": "luong", "attention_tanh": True, "bridge": "tanh", "num_layers": 4},
    "luong-cosine": {"cell": "luong", "attention_score": "cosine", "attention": "luong"},
    "luong-scaled-dot": {"cell": "luong", "attention_score": "scaled_dot", "unit_type": "gru"},
    "luong-bahdanau": {"cell": "luong", "attention": "bahdanau", "unit_type": "gru"},
    "luong-normed": {"cell": "luong", "attention": "normed_bahdanau"},
    "ntm": {"cell": "ntm_attention"},
    "ntm-cosine": {"cell": "ntm_attention", "attention_score": "cosine", "unit_type": "gru"},
    "ntm-heads": {"cell": "ntm_attention", "num_attention_heads": 3, "shift_range": 2},
    "ntm-scaled": {"cell": "ntm_attention", "num_attention_heads": 2, "head_scale": 0.3},
    "ntm-gru": {"cell": "ntm_attention", "unit_type": "gru", "bridge": "zero"},
    "rnnsearch": {"cell": "rnnsearch", "unit_type": "gru", "projection_bias": True},
    "rnnsearch-sum": {"cell": "rnnsearch", "unit_type": "gru", "annotation_merge": "sum"},
    "rnnsearch-sizes": {
        "cell": "rnnsearch", "unit_type": "gru", "attention_size": 7, "readout_size": 11,
    },
    "mematt": {"cell": "mematt", "unit_type": "gru"},
    "kvmematt-1": {"cell": "kvmematt", "unit_type": "gru", "annotation_merge": "sum"},
    "kvmematt-3": {"cell": "kvmematt", "unit_type": "gru", "num_rounds": 3, "attention_size": 7},
    "key-value": {"cell": "key_value", "projection_bias": True},
    "key-value-attn": {"cell": "key_value", "key_value_system": "attn"},
    "key-value-cosine": {"cell": "key_value", "attention_score": "cosine"},
    "key-value-iw": {"cell": "key_value", "key_value_system": "modifying_iw"},
    "coverage": {"cell": "coverage", "unit_type": "gru", "coverage_init_weight": 0.9},
    "coverage-linguistic": {
        "cell": "coverage", "unit_type": "gru", "coverage_model": "linguistic",
        "coverage_init_weight": 0.9, "attention_size": 7,
    },
    "coverage-neural": {
        "cell": "coverage", "unit_type": "gru", "coverage_model": "neural", "coverage_size": 3,
        "coverage_init_weight": 0.9, "annotation_merge": "sum",
    },
    "memdec": {
        "cell": "memdec", "unit_type": "gru", "num_memory_locations": 3, "memory_unit_size": 5,
        "attention_size": 7,
    },
    "past-future": {"cell": "past_future", "unit_type": "gru"},
    "past-future-gru": {"cell": "past_future", "unit_type": "gru", "future_layer": "gru"},
    "past-future-gru_o": {
        "cell": "past_future", "unit_type": "gru", "future_layer": "gru_o",
        "annotation_merge": "sum", "readout_size": 11,
    },
    "transformer": {
        "cell": "transformer", "encoder_type": "transformer", "embedding_size": 0,
        "transformer_heads": 2, "feed_forward_size": 11,
    },
    "transformer-window": {
        "cell": "transformer", "self_attention_window": 3, "num_layers": 1,
        "annotation_merge": "sum", "projection_bias": True,
    },
    "transformer-rewriting": {
        "cell": "kvmematt_transformer", "encoder_type": "transformer", "transformer_heads": 2,
    },
}  # fmt: skip
# A variant of each cell, for tests that take seconds a variant.
QUICK_VARIANTS = [
    "luong", "ntm-heads", "rnnsearch", "mematt", "kvmematt-3", "key-value-iw", "coverage-neural",
    "memdec", "past-future-gru_o", "transformer-window", "transformer-rewriting",
]  # fmt: skip


def hparams(variant="luong", **changes):
    """A small configuration without dropout."""
    base = {
        "num_units": 8,
        "embedding_size": 6,
        "encoder_type": "bi",
        "init_weight": 0.9,
        "embedding_init_weight": 1.5,
        "dropout": 0.0,
        "random_seed": 5,
    }
    return HParams(**{**base, **VARIANTS[variant], **changes})


def model(variant="luong", **changes):
    """A model of that configuration."""
    built = Seq2Seq(hparams(variant, **changes), SOURCE_SIZE, TARGET_SIZE)
    stream = np.random.default_rng(3)
    for variable in built.trainable_variables:  # biases that are not zero, gains that are not 1
        if "bias" in variable.name or "norm_gain" in variable.name or not np.any(variable):
            variable.assign_add(stream.normal(scale=0.3, size=variable.shape))
    return built


def batch(lengths, seed=0, append_source_eos=True):
    """A batch of random pairs; `lengths` are (source, target) lengths without `</s>`."""
    stream = np.random.default_rng(seed)
    sources = [stream.integers(3, SOURCE_SIZE, s) for s, _ in lengths]
    targets = [stream.integers(3, TARGET_SIZE, t) for _, t in lengths]
    rows = np.arange(len(lengths))
    return make_batch(sources, targets, np.full(len(lengths), -1), rows, append_source_eos)


def arrays(built):
    """Weights by name, float64."""
    return {
        v.name.split(":")[0].split("/", 1)[1]: v.numpy().astype(np.float64)
        for v in built.trainable_variables
    }


def oracle_weights(built):
    """The cell's weights under the oracles' names."""
    all_arrays = arrays(built)
    cell = {k[len("cell/") :]: v for k, v in all_arrays.items() if k.startswith("cell/")}
    weights = {k: v for k, v in cell.items() if "/" not in k}
    layers = sorted({k.split("/")[1] for k in cell if k.startswith("stack/layer_")})
    parts = ("kernel", "recurrent_kernel", "bias")
    weights["layers"] = [{p: cell[f"stack/{layer}/{p}"] for p in parts} for layer in layers]
    weights.update({k.split("/")[1]: v for k, v in cell.items() if k.startswith("memory/")})
    for gru in {k.split("/")[0] for k in cell if re.fullmatch(r"\w+_gru/kernel", k)}:
        weights[gru] = {p: cell[f"{gru}/{p}"] for p in parts}
    weights["layers"] += _transformer_layers(cell)
    weights["rounds"] = []
    while of_round := _below(cell, f"round_{len(weights['rounds']) + 1}/"):
        round_weights = {k: v for k, v in of_round.items() if "/" not in k}
        round_weights["state_gru"] = _below(of_round, "state_gru/")
        weights["rounds"].append(round_weights)
    return weights


def encoder_weights(built):
    """The weights of a Transformer's encoder under the oracle's names."""
    encoder = _below(arrays(built), "encoder/")
    weights = {k: v for k, v in encoder.items() if "/" not in k}
    return {**weights, "layers": _transformer_layers(encoder)}


def _transformer_layers(part):
    numbers = sorted(
        {int(k.split("/")[0][len("layer_") :]) for k in part if k.startswith("layer_")}
    )
    return [_below(part, f"layer_{number}/") for number in numbers]


def _below(arrays, prefix):
    return {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}


def row_of(value, row):
    """One row of a structure of tensors, as NumPy."""
    return tf.nest.map_structure(lambda t: t[row].numpy(), value)
