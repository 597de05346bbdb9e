"""The searches against slow independent ones, and two roads to each result."""

import numpy as np
import pytest
import small
import tensorflow as tf
from oracles import beam as oracle

from tfmann.cells.noise import Noise
from tfmann.decoding import search
from tfmann.models.seq2seq import Seq2Seq

LENGTHS = [(5, 1), (0, 1), (2, 1), (7, 1)]  # the second sentence is a blank line
PENALTIES = [(0.0, 0.0), (0.8, 0.0), (0.0, 0.3), (0.8, 0.3)]  # (alpha, beta)
LIMIT = 6
SOS, EOS = 1, 2
SOME = ["luong", "ntm-heads", "rnnsearch"]


def large_model(variant, seed=5, target_size=small.TARGET_SIZE, init_weight=1.2, **changes):
    """A model sure enough of its words that searches differ, and not too sure to end early."""
    h = small.hparams(variant, random_seed=seed, init_weight=init_weight, **changes)
    model = Seq2Seq(h, small.SOURCE_SIZE, target_size)
    stream = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        if "bias" in variable.name:
            variable.assign_add(stream.normal(scale=0.5, size=variable.shape))
    return model


def prepare(model, batch):
    return model.prepare(tf.constant(batch.source), tf.constant(batch.source_length))


def as_arrays(found):
    return search.Hypotheses(*(part if part is None else part.numpy() for part in found))


def run_beam(model, batch, width, alpha=0.0, beta=0.0, best=1, limit=LIMIT):
    how = search.Search(width, alpha, beta, best)
    return as_arrays(search.beam_search(model, prepare(model, batch), how, limit, True))


class Stepper:
    """One sentence's decoder as the oracles want it; a state is the ids that were read."""

    def __init__(self, model, batch, row):
        self.model, length = model, int(batch.source_length[row])
        self.prepared = model.prepare(
            tf.constant(batch.source[row : row + 1, :length]), tf.constant([length])
        )
        self._known = {(): (None, self.prepared.state, None)}

    def __call__(self, token, prefix):
        read = (*prefix, token)
        if read not in self._known:
            embedded = self.model.embed_target(tf.constant([token]))
            inputs = self.model.cell.prepare_inputs(embedded, Noise.none())
            out = self.model.cell.step(inputs, self._known[prefix][1], self.prepared.memory)
            logits = self.model.logits(out.output, embedded)[0].numpy().astype(np.float64)
            log_probs = logits - np.logaddexp.reduce(logits)
            alignment = out.diagnostics["alignments"][0].numpy()
            self._known[read] = (log_probs, out.state, alignment)
        log_probs, _, alignment = self._known[read]
        return log_probs, read, alignment


def check(found, row, wanted, best, source_length):
    """The first `best` hypotheses of a row are those of the oracle."""
    for rank, hypothesis in enumerate(wanted[:best]):
        length, message = found.lengths[row, rank], f"sentence {row}, hypothesis {rank}"
        assert tuple(found.ids[row, rank, :length]) == hypothesis.ids, message
        assert np.all(found.ids[row, rank, length:] == EOS), message
        score = found.scores[row, rank]
        np.testing.assert_allclose(score, hypothesis.score, rtol=1e-4, atol=1e-4, err_msg=message)
        alignments = found.alignments[row, rank, :length]
        assert np.all(alignments[:, source_length:] == 0), message
        np.testing.assert_allclose(
            alignments[:, :source_length], hypothesis.alignments, atol=1e-4, err_msg=message
        )


@pytest.mark.parametrize("round_", range(3))
@pytest.mark.parametrize("variant", list(small.VARIANTS))
def test_beam_search_equals_the_oracle(variant, round_):
    number = list(small.VARIANTS).index(variant)
    seed, width = 100 * round_ + number, 2 + (number + round_) % 4
    model, batch = large_model(variant, seed), small.batch(LENGTHS, seed)
    steppers = [Stepper(model, batch, row) for row in range(len(LENGTHS))]
    lengths = set()
    for alpha, beta in PENALTIES:
        wanted = [oracle.beam_search(s, (), width, LIMIT, alpha, beta) for s in steppers]
        for best in (1, width):
            found = run_beam(model, batch, width, alpha, beta, best)
            assert found.ids.shape[:2] == (len(LENGTHS), best)
            for row in range(len(LENGTHS)):
                check(found, row, wanted[row], best, batch.source_length[row])
        lengths |= {len(hypothesis.ids) for hypotheses in wanted for hypothesis in hypotheses}
    assert len(lengths) > 2, "hypotheses of one length show nothing"
