"""Small models with large random weights, and searches of them step by step."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf
from helpers import small_models

from tfmann.decoding import search
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.teacher_forcing import forced_log_probs
from tfmann.layers.dropout import DropoutMasks
from tfmann.models import seq2seq
from tfmann.models.seq2seq import Seq2Seq

LENGTHS = [(5, 1), (0, 1), (2, 1), (7, 1)]  # the second sentence is a blank line
LIMIT = 6
WITH_ALIGNMENTS = search.SearchOptions(LIMIT, with_alignments=True)
SIGNATURE = [seq2seq.IDS, seq2seq.LENGTHS]  # of a function of source ids and lengths
SOS, EOS = 1, 2
SOME_VARIANTS = ["luong", "ntm-heads", "rnnsearch"]


def large_model(variant, seed=5, target_size=small_models.TARGET_SIZE, **changes):
    """A model with large weights, whose translations end at many lengths."""
    sizes = {"init_weight": 1.0, "embedding_init_weight": 3.0, "random_seed": seed}
    h = small_models.hparams(variant, **{**sizes, **changes})
    model = Seq2Seq(h, small_models.SOURCE_SIZE, target_size)
    stream = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        if "bias" in variable.name:
            variable.assign_add(stream.normal(scale=0.5, size=variable.shape))
    ending = np.where(np.arange(target_size) == EOS, 3.0, 1.0)  # </s> now likely, now not
    model.projection_kernel.assign(model.projection_kernel * ending)
    return model


def prepare(model, batch):
    return model.prepare(tf.constant(batch.source), tf.constant(batch.source_length))


def as_arrays(hypotheses):
    return search.Hypotheses(*(part if part is None else part.numpy() for part in hypotheses))


def run_beam(model, batch, width, alpha=0.0, beta=0.0, best=1, limit=LIMIT):
    beam = BeamOptions(width, alpha, beta, best)
    options = search.SearchOptions(limit, with_alignments=True)
    return as_arrays(search.beam_search(model, prepare(model, batch), beam, options))


class SharedStep:
    """A decoder's step as a compiled function, for which all models of some settings lend weights.

    To trace it takes longer than all that a test asks of it.
    """

    def __init__(self, hparams, target_size):
        model = self._model = Seq2Seq(hparams, small_models.SOURCE_SIZE, target_size)
        self.lender = None  # whose weights it has; None where these may have changed

        @tf.function(autograph=False, reduce_retracing=True)
        def step(token, state, source):
            embedded = model.embed_target(token)
            inputs = model.cell.prepare_inputs(embedded, DropoutMasks.none())
            out = model.cell.step(inputs, state, source)
            logits = model.projection()(model.readout(out.output, embedded))
            return logits, out.state, out.diagnostics["alignments"]

        self._step = step

    def __call__(self, lender, *inputs):
        if self.lender is not lender:
            for variable, value in zip(self._model.variables, lender.variables, strict=True):
                variable.assign(value)
            self.lender = lender
        return self._step(*inputs)


shared_step = functools.lru_cache(maxsize=16)(SharedStep)


class Stepper:
    """One sentence's decoder as the oracles want it; a state is the ids that were read."""

    def __init__(self, model, batch, row):
        self._model, length = model, int(batch.source_length[row])
        settings = dataclasses.replace(model.hparams, random_seed=0)
        self._step = shared_step(settings, model.target_size)
        self._step.lender = None
        self.prepared = model.prepare(
            tf.constant(batch.source[row : row + 1, :length]), tf.constant([length])
        )
        self._known = {(): (None, self.prepared.state, None)}

    def __call__(self, token, prefix):
        read = (*prefix, token)
        if read not in self._known:
            before = self._known[prefix][1]
            inputs = tf.constant([token]), before, self.prepared.source
            logits, state, alignments = self._step(self._model, *inputs)
            logits = logits[0].numpy().astype(np.float64)
            log_probs = logits - np.logaddexp.reduce(logits)
            self._known[read] = (log_probs, state, alignments[0].numpy())
        log_probs, _, alignment = self._known[read]
        return log_probs, read, alignment


def check(hypotheses, row, expected, best, source_length):
    """The first `best` hypotheses of a row are those of the oracle."""
    for rank, hypothesis in enumerate(expected[:best]):
        length, message = hypotheses.lengths[row, rank], f"sentence {row}, hypothesis {rank}"
        assert tuple(hypotheses.ids[row, rank, :length]) == hypothesis.ids, message
        assert np.all(hypotheses.ids[row, rank, length:] == EOS), message
        score = hypotheses.scores[row, rank]
        np.testing.assert_allclose(score, hypothesis.score, rtol=1e-4, atol=1e-4, err_msg=message)
        alignments = hypotheses.alignments[row, rank, :length]
        assert np.all(alignments[:, source_length:] == 0), message
        np.testing.assert_allclose(
            alignments[:, :source_length], hypothesis.alignments, atol=1e-4, err_msg=message
        )


def assert_same_hypotheses(hypotheses, row, expected, expected_row):
    """Two searches found the same hypotheses for a sentence."""
    for rank, length in enumerate(hypotheses.lengths[row]):
        assert expected.lengths[expected_row, rank] == length
        assert np.array_equal(
            hypotheses.ids[row, rank, :length], expected.ids[expected_row, rank, :length]
        )
        width = min(hypotheses.alignments.shape[-1], expected.alignments.shape[-1])
        np.testing.assert_allclose(
            hypotheses.alignments[row, rank, :length, :width],
            expected.alignments[expected_row, rank, :length, :width],
            atol=1e-5,
        )
    np.testing.assert_allclose(
        hypotheses.scores[row], expected.scores[expected_row], rtol=1e-5, atol=1e-5
    )


def force(model, batch, hypotheses):
    """Log-probabilities and alignments of all hypotheses of a search by forced decoding."""
    count, steps = hypotheses.ids.shape[1:]
    ids = hypotheses.ids.reshape(-1, steps)
    read = np.concatenate([np.full([len(ids), 1], SOS), ids[:, :-1]], axis=1)
    prepared = model.prepare(
        tf.repeat(tf.constant(batch.source), count, axis=0), np.repeat(batch.source_length, count)
    )
    log_probs, diagnostics, _ = forced_log_probs(
        model, prepared, tf.constant(read, tf.int32), tf.constant(ids),
        tf.constant(hypotheses.lengths.reshape(-1), tf.int32), ("alignments",),
    )  # fmt: skip
    alignments = diagnostics["alignments"].numpy()
    return (
        log_probs.numpy().sum(axis=1).reshape(-1, count),
        alignments.reshape(-1, count, *alignments.shape[1:]),
    )
