"""Documents: where they begin, the sentences before a sentence, documents side by side."""

import itertools

import numpy as np
import pytest
from helpers.batches import are_same, encoded, random_lengths

from tfmann.config import HParams
from tfmann.data.batching import Position, TrainingBatches, make_batch
from tfmann.data.document_batches import DocumentBatches, document_evaluation_batches
from tfmann.data.documents import (
    assign_to_rows,
    document_starts,
    exchange_documents,
    sentences_by_document,
)
from tfmann.data.evaluation_batches import evaluation_batches
from tfmann.data.vocab import EOS_ID

SIZES = (5, 1, 9, 2, 2, 7, 4)  # sentences of the documents


def documents(sizes=SIZES):
    return np.repeat(np.arange(len(sizes)) + 10, sizes)


def document_batches(rows=3, sizes=SIZES, lengths=None, **settings):
    ids = documents(sizes)
    lengths = random_lengths(len(ids)) if lengths is None else lengths
    return DocumentBatches(encoded(lengths, ids), HParams(batch_size=rows, **settings))


def test_a_document_begins_where_the_id_changes():
    assert document_starts([4, 4, 7, 4, 4, 4]).tolist() == [0, 0, 2, 3, 3, 3]
    assert document_starts([-1, -1, 3, 3]).tolist() == [0, 1, 2, 2]
    assert document_starts([]).tolist() == []


def test_the_sentences_of_each_document_without_blank_ones():
    texts = ["a", "b", "", "c", "d", "", "e"]
    numbers = sentences_by_document([1, 1, 1, 1, 2, 3, 1], texts)
    assert numbers == [[0, 1, 3], [4], [6]]
    numbers = sentences_by_document([1, 1, 2, 1, 1, 3, 1], texts)
    assert numbers == [[0, 1], [3, 4], [6]], "a document of blank lines also ends the one before"


@pytest.mark.parametrize("count", [2, 3, 5, 8, 78])
def test_every_document_is_exchanged_for_another_of_like_length(count):
    lengths = np.random.default_rng(count).integers(2, 40, count).tolist()
    exchanged = exchange_documents(lengths, 1)
    assert sorted(exchanged) == list(range(count))
    assert all(counterpart != document for document, counterpart in enumerate(exchanged))
    # no farther apart than the widest seven neighbours, which a group has at most
    ordered = sorted(lengths)
    widest = max(ordered[min(i + 6, count - 1)] - ordered[i] for i in range(count))
    assert (
        max(abs(lengths[i] - lengths[counterpart]) for i, counterpart in enumerate(exchanged))
        <= widest
    )
    assert exchange_documents(lengths, 1) == exchanged


def test_the_seed_chooses_the_exchange():
    lengths = SIZES * 6
    assert len({tuple(exchange_documents(lengths, seed)) for seed in range(5)}) == 5


def test_documents_are_dealt_evenly():
    rows = assign_to_rows([range(n) for n in SIZES], 3)
    assert sorted(len(d) for row in rows for d in row) == sorted(SIZES)
    loads = [sum(map(len, row)) for row in rows]
    assert sorted(loads) == [9, 10, 11]
    assert assign_to_rows(["ab"], 5) == [["ab"]]


@pytest.mark.parametrize("rows", [1, 3, 50])
def test_each_row_goes_through_whole_documents_in_order(rows):
    data = document_batches(rows)
    ids = documents()
    for epoch in (0, 1):
        plan = np.stack(data.plan(epoch))  # [batches, rows]
        assert sorted(plan[plan >= 0]) == list(range(len(ids)))
        for row in plan.T:
            row = row[: np.flatnonzero(row >= 0)[-1] + 1]
            assert (row >= 0).all()  # nothing is missing before a row's end
            for before, after in itertools.pairwise(row):
                ended = before + 1 == len(ids) or ids[before + 1] != ids[before]
                starts = after == 0 or ids[after - 1] != ids[after]
                assert starts if ended else after == before + 1
    assert not np.array_equal(np.stack(data.plan(0)), np.stack(data.plan(1))) or rows == 50


def test_batches_mark_beginnings_and_have_no_words_where_a_row_has_ended():
    data = document_batches(4)
    plan = data.plan(0)
    stream = data.batches(Position())
    ids = documents()
    idle = 0
    for indexes in plan:
        batch, _ = next(stream)
        for row, index in enumerate(indexes):
            if index < 0:
                idle += 1
                assert batch.target_length[row] == 0 and not batch.starts[row]
                continue
            assert batch.sentences[row] == index and batch.target_length[row] > 1
            assert batch.starts[row] == (index == 0 or ids[index - 1] != ids[index])
    assert idle == 4 * len(plan) - len(ids) > 0


def test_rows_that_have_ended_count_in_no_total():
    data = document_batches(4)
    batches = [b for b, _ in itertools.islice(data.batches(Position()), len(data.plan(0)))]
    assert any((b.target_length == 0).any() for b in batches)
    for b in batches:
        assert b.totals.tolist() == [b.target_length.sum(), np.count_nonzero(b.target_length)]


def test_parallel_documents_continue_from_a_position():
    uninterrupted = list(itertools.islice(document_batches().batches(Position()), 30))
    _, position = uninterrupted[12]
    rest = itertools.islice(document_batches().batches(position), 17)
    assert all(
        are_same(expected, actual) for (expected, _), (actual, _) in zip(uninterrupted[13:], rest)
    )


def test_a_document_whose_first_sentence_is_left_out_begins_with_the_next():
    ids = np.array([1, 1, 1, 2, 2])
    lengths = [(0, 3), (4, 4), (5, 5), (2, 0), (3, 3)]
    data = DocumentBatches(encoded(lengths, ids), HParams(batch_size=1))
    batches = [batch for batch, _ in itertools.islice(data.batches(Position()), 3)]
    assert sorted(b.sentences[0] for b in batches) == [1, 2, 4]
    assert {b.sentences[0]: bool(b.starts[0]) for b in batches} == {1: True, 2: False, 4: True}


def test_documents_stay_apart_where_the_one_between_them_is_left_out():
    ids = np.array([1, 1, 2, 1, 1])
    lengths = [(4, 4), (5, 5), (2, 0), (3, 3), (4, 4)]
    data = DocumentBatches(encoded(lengths, ids), HParams(batch_size=1))
    batches = [batch for batch, _ in itertools.islice(data.batches(Position()), 4)]
    assert {b.sentences[0] for b in batches if b.starts[0]} == {0, 3}


def test_measuring_in_documents_sees_every_pair_once():
    ids = documents()
    corpus = encoded(random_lengths(len(ids)), ids)
    words, sentences = 0, []
    for batch in document_evaluation_batches(corpus, 3, True):
        real = batch.target_length > 0
        sentences += batch.sentences[real].tolist()
        words += batch.words
        assert batch.totals.tolist() == [batch.words, real.sum()]
        assert (batch.starts[real] == np.isin(batch.sentences[real], document_starts(ids))).all()
    assert sorted(sentences) == list(range(len(ids)))
    assert words == sum(len(corpus.target(i)) + 1 for i in range(len(ids)))


def test_a_sentence_comes_with_the_previous_ones():
    corpus = encoded([(2, 1), (1, 1), (0, 1), (3, 1)], [5, 5, 5, 5])  # pair i is of ids i + 3
    data = TrainingBatches(corpus, HParams(batch_size=9), history_size=2)
    batch, _ = next(data.batches(Position()))
    rows = {int(s): row for row, s in enumerate(batch.sentences)}
    assert sorted(rows) == [0, 1, 3]  # the third has no source: none to train on, yet one to read

    def history(sentence):
        row = rows[sentence]
        pairs = zip(batch.history[row], batch.history_length[row])
        return [ids[:length].tolist() for ids, length in pairs]

    assert history(0) == [[], []]
    assert history(1) == [[], [3, 3, EOS_ID]]
    assert history(3) == [[4, EOS_ID], [EOS_ID]]
    first = next(evaluation_batches(corpus, 9, True, history_size=2))
    assert first.history_length.tolist() == [
        [[0, 0], [0, 3], [3, 2], [2, 1]][i] for i in first.sentences
    ]


def test_history_ends_where_the_document_does_and_is_cut_as_sources_are():
    corpus = encoded([(9, 2), (3, 2), (3, 2)], [1, 1, 2])
    batch, _ = next(
        TrainingBatches(corpus, HParams(batch_size=9, src_max_len=4), 1).batches(Position())
    )
    lengths = dict(zip(batch.sentences.tolist(), batch.history_length[:, 0].tolist()))
    assert lengths == {0: 0, 1: 5, 2: 0}


def test_without_history_there_is_none():
    batch = make_batch([[5]], [[6]], np.array([-1]), np.array([0]), True)
    assert batch.history.shape == (1, 0, 1) and batch.history_length.shape == (1, 0)
    assert not batch.starts.any()
