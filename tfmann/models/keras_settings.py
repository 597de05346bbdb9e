"""Which settings a cell takes in a Keras model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfmann.config.hparams import refuse_unknown
from tfmann.errors import UsageError

# The settings of a cell with recurrent layers, in addition to its options in the registry.
COMMON = (
    "num_units", "num_layers", "num_decoder_layers", "unit_type", "forget_bias", "init_op",
    "init_weight", "recurrent_init_op", "random_seed",
)  # fmt: skip
DEFAULTS = {"num_layers": 1, "init_op": "glorot_uniform"}  # where they differ from `HParams`


def require_readable(
    settings: Mapping[str, Any], readable: Sequence[str], cell: str, where: str
) -> None:
    """Raises UsageError if `where` is given a setting that the cell does not read there."""
    refuse_unknown(settings, where=where)
    for key in settings:
        if key not in readable:
            hint = "; use tf.keras.layers.Dropout" if "dropout" in key else ""
            raise UsageError(
                f"{where}: {cell!r} does not read {key} here, only {', '.join(readable)}{hint}"
            )
