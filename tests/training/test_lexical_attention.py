"""The attention over word translations: its loss, and that learning changes nothing else."""

import numpy as np
import pytest
from helpers import small_models
from oracles import lexical_memory as oracle

from tfmann.data import translation_table
from tfmann.data.word_links import Links
from tfmann.training.lexical_attention import LexicalAttentionTrainer

DEPTH = 5


def trainer(variant="rnnsearch", rate=0.05):
    stream = np.random.default_rng(2)
    counts = stream.integers(1, 5, [small_models.SOURCE_SIZE, small_models.TARGET_SIZE])
    counts *= stream.random(counts.shape) < 0.4
    counts[:3], counts[:, :3] = 0, 0
    found = np.nonzero(counts)
    links = Links(*found, counts[found])
    model = small_models.model(variant)
    table = translation_table.from_links(links, 5)
    return model, links, LexicalAttentionTrainer(model, table, DEPTH, rate)


def batch(seed=0):
    return small_models.batch([(5, 4), (1, 3), (7, 6)], seed)


def loss_by_loops(model, links, weights, one):
    """The sum of -log beta and the counts, by the oracle, from the model's own readouts."""
    from tfmann.decoding.forced_readouts import forced_readouts

    forward, backward = {}, {}
    for s, t, count in zip(*(part.tolist() for part in links)):
        forward.setdefault(s, {})[t] = float(count)
        backward.setdefault(t, {})[s] = count / links.counts[links.target == t].sum()
    prepared = model.prepare(one.source, one.source_length)
    readouts = forced_readouts(model, prepared, one.target_in, one.target_length).numpy()
    total = covered = words = 0
    for row, length in enumerate(one.target_length):
        ids = one.source[row, : one.source_length[row] - 1].tolist()
        slots = oracle.select_entries(ids, forward, {0, 1, 2}, 2 * len(ids))
        elements = oracle.memory_elements(
            slots, ids, prepared.encoded.annotations[row].numpy(),
            model.target_embedding.numpy(), backward,
        )  # fmt: skip
        labels = one.target_out[row, : length - 1].tolist()
        betas = [oracle.attend(weights, readouts[row, t], elements) for t in range(length - 1)]
        count = sum(label in slots for label in labels)
        total += oracle.memory_loss(betas, slots, labels) * count
        covered, words = covered + count, words + length - 1
    return total / covered, covered / words


@pytest.mark.quick("rnnsearch")
@pytest.mark.parametrize("variant", ["rnnsearch", "luong", "transformer"])
def test_the_loss_is_that_of_the_oracle(variant):
    model, links, system = trainer(variant)
    for variable, value in zip(system.weights, np.random.default_rng(5).normal(size=3)):
        variable.assign_add(0.5 * value * np.ones(variable.shape, np.float32))
    loss, coverage = system.evaluate([batch()])
    expected = loss_by_loops(model, links, system.arrays(), batch())
    assert (loss, coverage) == pytest.approx(expected, rel=1e-4)
    assert 0.2 < coverage < 1.0


def test_learning_finds_the_words_and_leaves_the_model_as_it_is():
    model, _, system = trainer()
    before = small_models.arrays(model)
    uniform = system.evaluate([batch()]).loss
    logged = []
    system.learn([batch()] * 60, 20, lambda number, fit: logged.append((number, fit.loss)))
    assert [number for number, _ in logged] == [20, 40, 60]
    assert logged[0][1] > logged[1][1] > logged[2][1]
    assert system.evaluate([batch()]).loss < 0.5 * uniform
    after = small_models.arrays(model)
    assert all(np.array_equal(after[name], value) for name, value in before.items())


def test_text_without_a_known_word_has_no_loss():
    _, _, system = trainer()
    nothing = batch()._replace(target_out=np.zeros_like(batch().target_out))
    assert system.evaluate([nothing]) == (0.0, 0.0)
    before = system.arrays()
    system.learn([nothing], 1, lambda number, fit: None)
    for name, value in system.arrays().items():
        np.testing.assert_array_equal(value, before[name])
