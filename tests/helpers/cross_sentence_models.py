"""Small models of the cells summary and previous, with random histories."""

import numpy as np
import tensorflow as tf
from helpers import small_models

from tfmann.decoding.teacher_forcing import teacher_forced
from tfmann.models.history_encoder import History
from tfmann.training import named_variables

SYSTEMS = ("summary", "previous")
LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2), (7, 5)]
BEFORE = [[], [4], [2, 6], [3, 1, 5], [1, 1, 1]]  # lengths of the sentences before each
PARTS = ("kernel", "recurrent_kernel", "bias")


def model(system, **changes):
    return small_models.model("rnnsearch", **{"cell": system, **changes})


def histories(before=BEFORE, sentences=3, seed=1):
    """Ids of `sentences` before each, right-aligned; what is not there is full of other words."""
    stream = np.random.default_rng(seed)
    length = np.zeros([len(before), sentences], np.int32)
    for row, lengths in enumerate(before):
        length[row, sentences - len(lengths) :] = lengths
    shape = [len(before), sentences, length.max()]
    return History(stream.integers(3, small_models.SOURCE_SIZE, shape, np.int32), length)


def variables_by_name(built):
    return named_variables.by_name(built.trainable_variables)


def decode(built, batch, document, dtype=tf.float32):
    """Returns the prepared source, readouts `[T, B, O]`, states `[T, B, U]`, diagnostics."""
    prepared = built.prepare(batch.source, batch.source_length, None, dtype, document=document)
    outputs, embedded, diagnostics = teacher_forced(
        built, prepared, batch.target_in, batch.target_length, dtype=dtype, record=("*",)
    )[:3]
    steps = tf.shape(outputs)[0]
    flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
    words = tf.reshape(embedded[:steps], [-1, embedded.shape[-1]])
    readout = built.readout(flat, words, dtype=dtype)
    readout = tf.reshape(readout, [steps, -1, readout.shape[-1]])
    return prepared, readout, outputs[..., : built.hparams.num_units], embedded, diagnostics


NEW_WEIGHTS = {
    "summary": {
        *(f"history/{gru}/forward/{part}" for gru in ("sentence", "document") for part in PARTS),
        "cell/summary_initial_kernel", "cell/summary_state_kernel", "cell/gate_query_kernel",
        "cell/gate_context_kernel", "cell/gate_summary_kernel",
    },
    "previous": {
        *(f"history/layer_0/{side}/{part}" for side in ("forward", "backward") for part in PARTS),
        "cell/previous_query_kernel", "cell/previous_memory_kernel", "cell/previous_score_vector",
        "cell/previous_state_kernel", "cell/previous_readout_kernel",
    },
}  # fmt: skip
