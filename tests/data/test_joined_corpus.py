"""Corpora drawn by weights: how often each pair comes, whole documents, resuming."""

import itertools
from collections import Counter

import numpy as np
import pytest
from helpers.batches import are_same, encoded, random_lengths

from tfmann.config import HParams
from tfmann.data.batching import Position, TrainingBatches
from tfmann.data.document_batches import DocumentBatches
from tfmann.data.joined_corpus import JoinedCorpus, WeightedDraws
from tfmann.errors import UsageError, UserError

SIZES = (40, 10, 25)  # pairs of the corpora
WEIGHTS = "3,1.5,0.5"
SHARES = (0.6, 0.3, 0.1)
DOCUMENTS = [(5, 1, 9, 2), (3, 3), (4, 1, 1, 2)]  # sentences of the documents of each corpus


def settings(**changes):
    defaults = {"batch_size": 8, "train_prefix": "a,b,c", "train_weights": WEIGHTS}
    return HParams(**{**defaults, **changes})


def joined(sizes=SIZES):
    return JoinedCorpus([encoded(random_lengths(n, seed)) for seed, n in enumerate(sizes)])


def joined_documents():
    ids = [np.repeat(np.arange(len(sizes)) + 7, sizes) for sizes in DOCUMENTS]
    return JoinedCorpus([encoded(random_lengths(len(part)), part) for part in ids])


def draw_epochs(data, epochs):
    """The pairs of some epochs in the order of the plan."""
    plans = [np.concatenate(data.plan(epoch)) for epoch in range(epochs)]
    return [plan[plan >= 0] for plan in plans]


def test_a_joined_corpus_has_the_pairs_of_its_parts():
    parts = [encoded(random_lengths(n, seed), [4] * n) for seed, n in enumerate((3, 1, 2))]
    corpus = JoinedCorpus(parts)
    expected = [(part, i) for part in parts for i in range(len(part))]
    assert len(corpus) == len(expected) == 6
    for index, (part, i) in enumerate(expected):
        np.testing.assert_array_equal(corpus.source(index), part.source(i))
        np.testing.assert_array_equal(corpus.target(index), part.target(i))
    lengths = [len(part.target(i)) for part, i in expected]
    assert np.diff(corpus.target_starts).tolist() == lengths
    assert len(set(corpus.documents[[0, 3, 4]])) == 3, "one document continues in the next corpus"
    no_documents = JoinedCorpus([encoded(random_lengths(2)), encoded(random_lengths(2), [0, 0])])
    assert no_documents.documents[:2].tolist() == [-1, -1]


def test_draws_are_those_of_an_endless_stream():
    lengths, parts = np.array([2, 1, 3, 1, 1]), np.array([0, 0, 0, 1, 1])
    draws = WeightedDraws(parts, lengths, [1.0, 3.0], seed=5)
    for part, (units, rate) in enumerate((([0, 1, 2], 2.0), ([3, 4], 6.0))):
        stream, position = [], 0  # (first pair, unit)
        for number in range(20):
            order = np.random.Generator(np.random.PCG64([5, part, number, 1]))
            for i in order.permutation(len(units)):
                stream.append((position, units[i]))
                position += lengths[units[i]]
        for epoch in range(5):
            expected = [u for begin, u in stream if rate * epoch <= begin < rate * (epoch + 1)]
            assert [i for i in draws.draw(epoch) if parts[i] == part] == expected


@pytest.mark.parametrize("changes", [{}, {"bucket_pool": 0}, {"batch_type": "tokens"}])
def test_corpora_are_drawn_by_their_weights_and_their_pairs_evenly(changes):
    data = TrainingBatches(joined(), settings(**{"batch_size": 60, **changes}))
    epochs = draw_epochs(data, 40)
    counts = np.bincount(np.concatenate(epochs), minlength=sum(SIZES))
    begins = np.cumsum([0, *SIZES])
    for begin, end, share in zip(begins, begins[1:], SHARES):
        assert abs(counts[begin:end].sum() - share * 40 * sum(SIZES)) <= 1
        assert counts[begin:end].max() - counts[begin:end].min() <= 1
    assert all(abs(len(pairs) - sum(SIZES)) < len(SIZES) for pairs in epochs)
    assert not np.array_equal(epochs[0], epochs[1])
    repeated = TrainingBatches(joined(), settings(**{"batch_size": 60, **changes}))
    assert np.array_equal(draw_epochs(repeated, 1)[0], epochs[0])


@pytest.mark.parametrize("kind", [TrainingBatches, DocumentBatches])
def test_batches_continue_from_a_position(kind):
    def stream(position):
        return kind(joined_documents(), settings()).batches(position)

    uninterrupted = list(itertools.islice(stream(Position()), 40))
    for _, position in (uninterrupted[4], uninterrupted[17]):
        begin = [after for _, after in uninterrupted].index(position) + 1
        rest = itertools.islice(stream(position), 40 - begin)
        assert all(
            are_same(batch, actual) for (batch, _), (actual, _) in zip(uninterrupted[begin:], rest)
        )


@pytest.mark.parametrize("rows", [4, 9])  # some epochs draw fewer than 9 documents
def test_documents_stay_whole_and_every_batch_has_as_many_rows(rows):
    data = DocumentBatches(joined_documents(), settings(batch_size=rows))
    begins = np.cumsum([0, *itertools.chain.from_iterable(DOCUMENTS)])
    document_of = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    counts = Counter()
    for epoch in range(60):
        plan = np.stack(data.plan(epoch))
        assert plan.shape[1] == data.rows == rows
        for row in plan.T:
            row = row[row >= 0]
            while len(row):
                document = document_of[row[0]]
                length = begins[document + 1] - begins[document]
                assert row[:length].tolist() == list(range(begins[document], begins[document + 1]))
                counts[document] += length
                row = row[length:]
    total, first = sum(map(sum, DOCUMENTS)) * 60, 0
    for sizes, share in zip(DOCUMENTS, SHARES):
        pairs = sum(counts[first + i] for i in range(len(sizes)))
        assert abs(pairs - share * total) <= 2 * max(sizes)
        first += len(sizes)


def test_one_corpus_without_weights_is_as_before():
    """A fixed plan: the same numbers as of the revision before there were weights."""
    corpus = encoded(random_lengths(30))
    data = TrainingBatches(corpus, HParams(batch_size=8, bucket_pool=0))
    order = np.random.Generator(np.random.PCG64([1, 0])).permutation(30)
    np.testing.assert_array_equal(np.concatenate(data.plan(0)), order)


@pytest.mark.parametrize(
    ("prefix", "weights", "words"),
    [
        ("a,b", "3", "has 1 weights, and train_prefix='a,b' 2 corpora"),
        ("a", "3,1", "has 2 weights, and train_prefix='a' 1 corpora"),
        ("a,b", "3,0", "expected positive numbers"),
        ("a,b", "3,-1", "expected positive numbers"),
        ("a,b", "3,,1", "expected positive numbers"),
        ("a,b", "3,nan", "expected positive numbers"),
        ("a,b", f"3,{'9' * 400}", "expected positive numbers of at most 1,000,000"),
    ],
)
def test_weights_are_checked(prefix, weights, words):
    with pytest.raises(UsageError, match=words):
        HParams(train_prefix=prefix, train_weights=weights)


def test_a_corpus_without_a_pair_is_named():
    parts = [encoded(random_lengths(5)), encoded([(0, 3), (2, 0)])]
    with pytest.raises(UserError, match="no training pair of b is left"):
        TrainingBatches(JoinedCorpus(parts), settings(train_prefix="a,b", train_weights="1,1"))
