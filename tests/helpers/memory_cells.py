"""Cells with a memory, small enough for finite differences."""

import numpy as np
from helpers import small_models

from tfmann.config import HParams
from tfmann.models.seq2seq import Seq2Seq

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
        if "bias" in variable.name or "initial_memory" in variable.name:
            variable.assign_add(stream.normal(scale=0.5, size=variable.shape))
    return model
