"""Cells with a memory, small enough for finite differences."""

from typing import Any

import numpy as np
from helpers import small_models
from oracles import dnc, dnc_repairs, ntm

from tfmann.config import HParams
from tfmann.models.seq2seq import Seq2Seq

# Settings that change the equations: by name the cell and what is set.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dnc-msd": (
        "dnc",
        {
            "dnc_masking": True, "dnc_mask_floor": 0.1, "dnc_deallocation": True,
            "dnc_sharp_links": True,
        },
    ),
    "dnc-content-only": (
        "dnc", {"dnc_content_only": True, "dnc_layer_norm": True, "dnc_bypass_dropout": 0.4},
    ),
    "dnc-hops": ("dnc", {"memory_hops": 3}),
    "ntm-hops": ("ntm", {"memory_hops": 3}),
}  # fmt: skip
SIZES = {"num_memory_locations": 6, "memory_unit_size": 4, "num_units": 8, "embedding_size": 5}


def build(cell, heads, encoder_type, **changes):
    settings = {
        "cell": cell, "encoder_type": encoder_type, "read_heads": heads[0],
        "write_heads": heads[1], "init_weight": 0.8, "embedding_init_weight": 1.5,
        "dropout": 0.0, "random_seed": 4, **SIZES, **changes,
    }  # fmt: skip
    model = Seq2Seq(HParams(**settings), small_models.SOURCE_SIZE, small_models.TARGET_SIZE)
    stream = np.random.default_rng(2)
    for variable in model.trainable_variables:
        if any(part in variable.name for part in ("bias", "gain", "initial_memory")):
            variable.assign_add(stream.normal(scale=0.5, size=variable.shape))
    return model


def run_oracle(h, weights, words):
    """All quantities of a pure MANN over words `[L, E]`, by the oracle of its settings.

    The weights are those of `small_models.oracle_weights`.
    """
    weights = dict(weights)
    sizes = h.read_heads, h.write_heads
    if "hop_gru" in weights:
        weights["hop"] = weights.pop("hop_gru")
    if h.cell == "ntm":
        return ntm.run(weights, words, *sizes, unit=h.unit_type, hops=h.memory_hops)
    for part, name in (("gain", "interface_gain"), ("bias", "interface_offset")):
        if f"interface_norm_{part}" in weights:
            weights[name] = weights[f"interface_norm_{part}"]
    options = dnc_repairs.Options(
        h.dnc_masking, h.dnc_mask_floor, h.dnc_deallocation, h.dnc_sharp_links,
        h.dnc_content_only, h.memory_hops,
    )  # fmt: skip
    rest = {"num_slots": h.num_memory_locations, "unit": h.unit_type}
    if options == dnc_repairs.PLAIN and not h.dnc_layer_norm:
        return dnc.run(weights, words, *sizes, **rest)
    return dnc_repairs.run(weights, words, *sizes, **rest, options=options)
