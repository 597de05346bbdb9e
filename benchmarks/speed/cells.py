"""The measured cells and sizes, and the cells that they are compared with."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.flops import GATE_ALONE

_COMMON = {
    "dropout": 0.0,
    "init_op": "glorot_uniform",
    "optimizer": "adam",
    "learning_rate": 0.001,
    "max_gradient_norm": 1.0,
    "src_max_len": 80,
    "tgt_max_len": 80,
    "projection_bias": True,  # by which decoding forbids `</s>`
}
# RNNSearch as in Meng et al. 2018; the rows of Collier & Beel 2019 and Mino et al. 2017 have
# two layers of LSTM on either side.
_SEARCH = {
    **_COMMON,
    "unit_type": "gru",
    "num_layers": 1,
    "encoder_type": "bi",
    "annotation_merge": "sum",
    "recurrent_init_op": "orthogonal",
    "readout_dropout": 0.5,
}
_LAYERS = {
    **_COMMON,
    "unit_type": "lstm",
    "num_layers": 2,
    "encoder_type": "bi",
    "dropout": 0.3,
}


class Row(NamedTuple):
    """A cell with its settings, and the row that its speed is relative to."""

    reference: str
    settings: dict[str, Any]


def _search(cell: str, **options: Any) -> Row:
    reference = "luong" if (cell, options) == ("rnnsearch", {}) else "rnnsearch"
    return Row(reference, {**_SEARCH, "cell": cell, **options})


def _layers(cell: str, **options: Any) -> Row:
    reference = "rnnsearch" if cell == "luong" else "luong"
    return Row(reference, {**_LAYERS, "cell": cell, **options})


ROWS: dict[str, Row] = {
    "rnnsearch": _search("rnnsearch"),
    "rnnsearch_eos": _search("rnnsearch", eos_attention_weight=1.0),
    "rnnsearch_sampled": _search("rnnsearch", num_sampled_softmax=2000),
    "coverage_fertility": _search("coverage"),
    "coverage_neural": _search("coverage", coverage_model="neural"),
    "memdec": _search("memdec"),
    "past_future": _search("past_future"),
    "mematt": _search("mematt"),
    "kvmematt_r1": _search("kvmematt", num_rounds=1),
    "kvmematt_r2": _search("kvmematt", num_rounds=2),
    # its training is the second stage, of the gate alone
    "cache": _search("cache", trainable_parameters=GATE_ALONE),
    "summary": _search("summary"),
    "previous": _search("previous"),
    "luong": _layers("luong"),
    "ntm_attention": _layers("ntm_attention"),
    "mad": _layers("mad"),
    "ntm": _layers("ntm", encoder_type="memory"),
    "dnc": _layers("dnc", encoder_type="memory"),
    "transformer": _layers("transformer", encoder_type="transformer"),
    "kvmematt_transformer": _layers("kvmematt_transformer", encoder_type="transformer"),
    "key_value_attn": _layers("key_value", key_value_system="attn"),
    "key_value": _layers("key_value", key_value_system="key_value"),
    "modifying_iw": _layers("key_value", key_value_system="modifying_iw"),
}
_WITH_SLOTS = ("mad", "ntm", "dnc", "memdec")


class Size(NamedTuple):
    """A size of model, batch and measurement."""

    units: int  # U = E
    vocabulary: int  # of either side
    batch: int  # sentences of an update
    words: int  # mean length of a sentence, and the steps of a decoding
    slots: int  # N
    slot_width: int  # W
    updates: int  # of a run of training
    decoded: int  # sentences of a run of decoding, all in one batch
    products: tuple[tuple[int, int, int], ...]  # to measure the machine's rate


# words of a batch by the readout by the vocabulary; gates of a sequence; a square
_PRODUCTS = ((2000, 512, 30000), (2000, 512, 2048), (2048, 2048, 2048))
SIZES: dict[str, Size] = {
    "tiny": Size(8, 60, 4, 4, 6, 8, 1, 2, ((64, 64, 64),)),  # for tests
    "small": Size(256, 8000, 64, 14, 64, 128, 8, 32, _PRODUCTS),
    "paper": Size(512, 30000, 80, 25, 128, 512, 2, 32, _PRODUCTS),
}


def hparams(row: str, size: str, **changes: Any) -> Any:
    """Returns the `HParams` of a row at a size."""
    from tfmann.config import HParams

    return HParams(**{**settings(row, size), **changes})


def settings(row: str, size: str) -> dict[str, Any]:
    """Returns the settings of a row at a size."""
    dimensions = SIZES[size]
    slots: dict[str, Any] = {}
    if row in _WITH_SLOTS:
        slots = {
            "num_memory_locations": dimensions.slots,
            "memory_unit_size": dimensions.slot_width,
        }
    widths = {"num_units": dimensions.units, "embedding_size": dimensions.units}
    return {**ROWS[row].settings, **widths, "batch_size": dimensions.batch, **slots}
