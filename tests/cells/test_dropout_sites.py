"""Dropout: where each model drops, and that every mask is applied.

A mask that is drawn and not applied, or a site that is lost, changes no equation that the oracles
compare, because these decode without dropout.
"""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models

from tfmann import config
from tfmann.data.batching import pad_histories
from tfmann.layers.dropout import DropoutMasks
from tfmann.models.history_encoder import History
from tfmann.training.objective import sum_loss

LENGTHS = [(5, 2), (3, 1)]


class Sites(DropoutMasks):
    """Masks of ones, but for one site, of which a part is dropped wholly."""

    def __init__(self, dropped="", part=slice(None), scope="", drawn=None):
        super().__init__(tf.constant([1, 2]), scope)
        self._dropped, self._part = dropped, part
        self.drawn = {} if drawn is None else drawn  # the width of each site's mask

    def scope(self, name):
        return Sites(self._dropped, self._part, f"{self._scope}/{name}", self.drawn)

    def mask(self, name, rate, shape):
        if rate == 0.0:
            return None
        site = f"{self._scope}/{name}"
        mask = np.ones(shape, np.float32)
        self.drawn[site] = mask.shape[-1]
        if site == self._dropped:
            mask[..., self._part] = 0.0
        return tf.constant(mask)


def build(variant, **changes):
    rates = {"dropout": 0.5, "readout_dropout": 0.5, "top_dropout": 0.5, **changes}
    return small_models.model(variant, **rates)


def loss(model, masks):
    batch = tuple(map(tf.constant, small_models.batch(LENGTHS)[:5]))
    size = config.cell_spec(model.hparams.cell).history_size
    before = History(*pad_histories([[[4, 5], [6]][:size][-size:]] * 2)) if size else ()
    before = tf.nest.map_structure(tf.constant, before)
    return float(sum_loss(model, batch, masks, tf.float32, before).cross_entropy)


ENCODER = {"/encoder/layer_0/input", "/encoder/top"}
GRU = {*ENCODER, "/cell/input", "/cell/readout"}
STACK = {"/cell/stack/input", "/cell/stack/layers", "/cell/readout"}
OF_SOURCE = {"/source/stack/input", "/source/stack/layers"}
MEMORY = {"num_memory_locations": 3, "memory_unit_size": 4}
PURE = {**MEMORY, "encoder_type": "memory", "top_dropout": 0.0}
LAYER = {f"/encoder/layer_{number}/{part}" for number in (0, 1) for part in ("self", "feed")}
# a variant, changes of it, where it drops
MODELS = [
    ("luong", {"num_layers": 2}, {*ENCODER, *STACK}),
    (
        "luong",
        {"num_layers": 2, "encoder_type": "uni"},
        {*ENCODER, "/encoder/layer_1/input", *STACK},
    ),
    ("ntm-heads", {}, {*ENCODER, *STACK}),
    ("luong", {"cell": "mad", **MEMORY}, {*ENCODER, *STACK}),
    ("luong", {"cell": "ntm", **PURE}, {*OF_SOURCE, *STACK}),
    (
        "luong",
        {"cell": "dnc", "dnc_bypass_dropout": 0.5, **PURE},
        {*OF_SOURCE, *STACK, "/cell/bypass"},
    ),
    ("rnnsearch", {}, GRU),
    ("mematt", {}, GRU),
    ("kvmematt-3", {}, GRU),
    ("coverage-neural", {}, GRU),
    ("memdec", {}, GRU),
    ("past-future-gru_o", {}, GRU),
    ("key-value-iw", {}, {*ENCODER, *STACK, "/cell/top"}),
    ("transformer-window", {}, {*ENCODER, "/cell/layers", "/cell/readout"}),
    (
        "transformer-rewriting",
        {},
        {"/encoder/input", "/encoder/top", *LAYER, "/cell/layers", "/cell/readout"},
    ),
    ("rnnsearch", {"cell": "cache"}, GRU),
    (
        "rnnsearch",
        {"cell": "summary"},
        {*GRU, "/history/sentence/input", "/history/document/input"},
    ),
    ("rnnsearch", {"cell": "previous"}, {*GRU, "/history/layer_0/input", "/history/top"}),
]


@pytest.mark.parametrize(
    "variant, changes, sites", MODELS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_is_dropped_where_changes_the_loss(variant, changes, sites):
    model, nowhere = build(variant, **changes), Sites()
    whole = loss(model, nowhere)
    assert nowhere.drawn.keys() == sites
    for site in sorted(sites):
        width = nowhere.drawn[site] if site.endswith("layers") else 4  # masks of several parts
        for begin in range(0, width, 4):
            part = slice(begin, begin + 4)
            assert abs(loss(model, Sites(site, part)) - whole) > 1e-4, (site, part)
