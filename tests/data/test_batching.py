"""Batches: shift and padding by hand, an order that follows from (seed, epoch), resuming."""

import itertools

import numpy as np
import pytest
from helpers.batches import are_same, encoded, random_lengths

from tfmann.config import HParams
from tfmann.data.batching import (
    Batch,
    Position,
    TrainingBatches,
    make_batch,
    pad_sources,
    shard_batch,
)
from tfmann.data.evaluation_batches import evaluation_batches
from tfmann.data.vocab import EOS_ID, SOS_ID
from tfmann.errors import UserError


def training(lengths, **settings):
    return TrainingBatches(
        encoded(lengths), HParams(**{"batch_size": 16, "bucket_pool": 5, **settings})
    )


def epoch_of(data, epoch):
    """The batches of one epoch, from the stream."""
    stream = data.batches(Position(epoch, 0))
    return [next(stream)[0] for _ in data.plan(epoch)]


# --- one batch --------------------------------------------------------------------------------


def test_shift_and_padding_by_hand():
    batch = make_batch(
        [[5, 6], [7], []], [[8], [9, 10], []], np.array([4, 4, -1]), np.array([0, 2, 9]), True
    )
    e, s = EOS_ID, SOS_ID
    expected = Batch(
        source=[[5, 6, e], [7, e, e], [e, e, e]],
        source_length=[3, 2, 1],
        target_in=[[s, 8, e], [s, 9, 10], [s, e, e]],
        target_out=[[8, e, e], [9, 10, e], [e, e, e]],
        target_length=[2, 3, 1],
        documents=[4, 4, -1],
        sentences=[0, 2, 9],
        starts=[False] * 3,
        history=[[]] * 3,
        history_length=[[]] * 3,
        totals=[6, 3],
    )
    for name, actual, rows in zip(Batch._fields, batch, expected):
        assert actual.tolist() == rows, name
    assert batch.words == 6
    assert {part.dtype for part in batch[:5]} == {np.dtype(np.int32)}


def test_a_source_without_its_end_is_never_empty():
    source, length = pad_sources([[5, 6], [], [7]], append_source_eos=False)
    assert source.tolist() == [[5, 6], [EOS_ID, EOS_ID], [7, EOS_ID]]
    assert length.tolist() == [2, 1, 1]


def test_shards_part_the_rows():
    batch = make_batch(
        [[i + 3] for i in range(7)], [[i + 3] * 2 for i in range(7)], np.arange(7), np.arange(7),
        True,
    )  # fmt: skip
    for count in (1, 2, 3, 7, 9):
        parts = shard_batch(batch, count)
        assert len(parts) == count
        rows = sorted(i for part in parts for i in part.sentences)
        assert rows == list(range(7))
        assert max(len(p.source) for p in parts) - min(len(p.source) for p in parts) <= 1
        for part in parts:
            assert part.totals is batch.totals
            for field, undivided in zip(part[:-1], batch):
                assert np.array_equal(field, undivided[part.sentences])


# --- an epoch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [0, 1, 5, 1000])
@pytest.mark.parametrize("kind, size", [("sentences", 16), ("sentences", 1000), ("tokens", 200)])
def test_every_pair_occurs_once_in_an_epoch(pool, kind, size):
    data = training(random_lengths(333), bucket_pool=pool, batch_type=kind, batch_size=size)
    for epoch in (0, 1, 7):
        batches = epoch_of(data, epoch)
        rows = np.concatenate([batch.sentences for batch in batches])
        assert sorted(rows) == list(range(333))
        for batch in batches:
            assert np.array_equal(batch.source[:, 0], batch.sentences + 3)
            assert np.array_equal(batch.target_out[:, 0], batch.sentences + 3)


def test_the_order_follows_from_seed_and_epoch_alone():
    lengths = random_lengths(200)
    used, with_other_settings = training(lengths), training(lengths, dropout=0.5, num_units=9)
    list(itertools.islice(used.batches(Position()), 30))  # having been used changes nothing
    plans = {}
    for seed in (1, 2):
        for epoch in (0, 1, 2):
            data = training(lengths, random_seed=seed)
            plans[seed, epoch] = [tuple(part) for part in data.plan(epoch)]
    assert len({tuple(plan) for plan in plans.values()}) == 6
    for epoch in (0, 1, 2):
        for data in (used, with_other_settings):
            assert [tuple(part) for part in data.plan(epoch)] == plans[1, epoch]


def test_pairs_of_a_batch_change_from_epoch_to_epoch():
    """Shuffling whole batches would not do: the same pairs would always come together."""
    data = training(random_lengths(400))
    together = [{frozenset(part.tolist()) for part in data.plan(epoch)} for epoch in (0, 1)]
    assert len(together[0] & together[1]) < 0.2 * len(together[0])


def test_short_and_long_batches_come_mixed():
    data = training(random_lengths(2000), bucket_pool=1000)
    means = np.array([batch.target_length.mean() for batch in epoch_of(data, 0)])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


@pytest.mark.parametrize("kind, size", [("sentences", 16), ("tokens", 150)])
def test_any_position_resumes_the_same_stream(kind, size):
    data = training(random_lengths(100), batch_type=kind, batch_size=size)
    count = 3 * len(data.plan(0))
    stream = list(itertools.islice(data.batches(Position()), count + 5))
    positions = [position for _, position in stream]
    assert len(set(positions)) == len(positions)
    assert positions[len(data.plan(0)) - 1] == Position(1, 0)
    for done in range(0, count, 2):
        fresh = training(random_lengths(100), batch_type=kind, batch_size=size)
        rest = itertools.islice(fresh.batches(stream[done][1]), 4)
        for (batch, position), (expected, expected_position) in zip(rest, stream[done + 1 :]):
            assert position == expected_position and are_same(batch, expected)


def test_a_position_past_the_end_of_an_epoch_is_the_start_of_the_next():
    data = training(random_lengths(100))
    past, next_one = (
        next(data.batches(position)) for position in (Position(0, 99), Position(1, 0))
    )
    assert past[1] == next_one[1] and are_same(past[0], next_one[0])


@pytest.mark.parametrize("before, after", [(16, 32), (32, 16), (16, 20)])
def test_another_batch_size_leaves_as_great_a_share_of_the_epoch(before, after):
    old = list(
        itertools.islice(training(random_lengths(640), batch_size=before).batches(Position()), 14)
    )
    data = training(random_lengths(640), batch_size=after)
    count = len(data.plan(0))
    stream = data.batches(old[-1][1])
    positions = [next(stream)[1] for _ in range(count)]
    assert positions.index(Position(1)) + 1 == pytest.approx(count * (1 - 14 * before / 640), abs=1)
    assert next(iter(data.batches(Position(0, 14))))[1] == Position(
        0, 15, count
    )  # of an older version


# --- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [0, 5])
def test_batches_of_sentences_are_full(pool):
    data = training(random_lengths(100), bucket_pool=pool)
    sizes = [len(part) for part in data.plan(0)]
    assert sorted(sizes, reverse=True) == [16] * 6 + [4]


@pytest.mark.parametrize("pool", [0, 5])
def test_batches_of_tokens_hold_so_many_padded_targets(pool):
    data = training(random_lengths(1000), bucket_pool=pool, batch_type="tokens", batch_size=300)
    batches = epoch_of(data, 0)
    padded = [batch.target_out.size for batch in batches]
    assert max(padded) <= 300
    assert np.mean(padded) > 0.85 * 300
    assert len({len(batch.source) for batch in batches}) > 3


@pytest.mark.parametrize(
    "kind, size, fewest",
    [("sentences", 16, 0.999), ("sentences", 999, 0.999), ("tokens", 200, 0.7)],
)
def test_the_words_of_a_batch_are_foretold(kind, size, fewest):
    """Of tokens as many as may be in it, of which padding takes a part."""
    data = training(random_lengths(96, seed=2), batch_type=kind, batch_size=size)
    words = [batch.words for batch in epoch_of(data, 0)]
    mean = np.mean(words) if kind == "sentences" else np.max(words)
    assert fewest * data.words_per_batch <= mean <= data.words_per_batch + 1


def test_a_pool_of_batches_of_tokens_is_a_part_of_the_corpus():
    """If all pairs were sorted together, no batch would begin below the end of a shorter one."""
    data = training(random_lengths(400), batch_type="tokens", batch_size=200, bucket_pool=2)
    lengths = [batch.target_length for batch in epoch_of(data, 0)]
    ranges = sorted((part.min(), part.max()) for part in lengths)
    assert any(begin < end for (_, end), (begin, _) in zip(ranges, ranges[1:]))


def test_one_pair_longer_than_a_batch_of_tokens_goes_alone():
    lengths = [(5, 5)] * 6 + [(40, 40)] + [(5, 5)] * 6
    data = training(lengths, batch_type="tokens", batch_size=24)
    for batch in epoch_of(data, 0):
        assert batch.target_out.size <= 24 or batch.sentences.tolist() == [6]


def overhead(data):
    batches = epoch_of(data, 0)
    return sum(b.target_out.size for b in batches) / sum(b.words for b in batches)


def test_sorting_in_pools_saves_padding():
    lengths = random_lengths(3000, high=50)
    assert overhead(training(lengths, bucket_pool=0)) > 1.5
    assert overhead(training(lengths, bucket_pool=20)) < 1.1
    assert overhead(training(lengths, bucket_pool=100)) < 1.04
    tokens = training(lengths, bucket_pool=100, batch_type="tokens", batch_size=500)
    assert overhead(tokens) < 1.04
    sources = epoch_of(training(lengths, bucket_pool=100), 0)
    padded = sum(b.source.size for b in sources) / sum(b.source_length.sum() for b in sources)
    assert padded < 1.15


# --- what is left out or cut ------------------------------------------------------------------

AWKWARD = [(3, 3), (0, 3), (3, 0), (0, 0), (9, 3), (3, 9), (9, 9), (4, 4), (0, 9)]


def test_long_pairs_are_cut_and_counted():
    data = training(AWKWARD, src_max_len=4, tgt_max_len=5)
    assert data.pairs.tolist() == [0, 4, 5, 6, 7]
    assert data.summary == "9 pairs; 4 with an empty side left out; 3 longer than 4/5 cut"
    (batch,) = epoch_of(data, 0)
    lengths = {
        int(row): (int(s), int(t))
        for row, s, t in zip(batch.sentences, batch.source_length, batch.target_length)
    }
    assert lengths == {0: (4, 4), 4: (5, 4), 5: (4, 6), 6: (5, 6), 7: (5, 5)}  # with </s>
    row = batch.sentences.tolist().index(6)
    assert batch.source[row].tolist() == [9, 9, 9, 9, EOS_ID]
    assert batch.target_in[row].tolist() == [SOS_ID, 9, 9, 9, 9, 9]
    assert batch.target_out[row].tolist() == [9, 9, 9, 9, 9, EOS_ID]


def test_long_pairs_are_left_out_and_counted():
    data = training(AWKWARD, src_max_len=4, tgt_max_len=5, max_len_policy="filter")
    assert data.pairs.tolist() == [0, 7]
    assert data.summary == "9 pairs; 4 with an empty side left out; 3 longer than 4/5 left out"
    assert sorted(epoch_of(data, 0)[0].sentences) == [0, 7]


def test_pairs_of_just_the_greatest_length_are_whole():
    data = training(AWKWARD, src_max_len=9, tgt_max_len=9, max_len_policy="filter")
    assert data.pairs.tolist() == [0, 4, 5, 6, 7]
    assert "; 0 longer than 9/9" in data.summary


@pytest.mark.parametrize("lengths", [[(0, 3)], [(9, 9), (0, 0)]])
def test_training_without_any_pair_is_refused(lengths):
    with pytest.raises(UserError, match="no training pair is left: .* with an empty side"):
        training(lengths, max_len_policy="filter", src_max_len=4)


def test_sources_end_in_their_own_symbol_only_if_set():
    for eos in (True, False):
        (batch,) = epoch_of(training([(3, 2), (5, 2)], append_source_eos=eos), 0)
        assert sorted(batch.source_length) == [3 + eos, 5 + eos]


def test_documents_come_with_their_pairs():
    corpus = encoded(random_lengths(50), documents=np.arange(50) * 7)
    for batch in epoch_of(TrainingBatches(corpus, HParams(batch_size=8)), 0):
        assert np.array_equal(batch.documents, batch.sentences * 7)


def test_measuring_takes_every_pair_blank_and_long_ones_too():
    corpus = encoded([(0, 3), (3, 0), (0, 0), (90, 70), (2, 5), (1, 5)])
    batches = list(evaluation_batches(corpus, 2, append_source_eos=True))
    assert [batch.sentences.tolist() for batch in batches] == [[2, 1], [0, 5], [4, 3]]
    lengths = {
        int(row): (int(s), int(t))
        for batch in batches
        for row, s, t in zip(batch.sentences, batch.source_length, batch.target_length)
    }
    assert lengths == {0: (1, 4), 1: (4, 1), 2: (1, 1), 3: (91, 71), 4: (3, 6), 5: (2, 6)}


def test_measuring_takes_fewer_of_the_long_pairs_at_once():
    corpus = encoded([*random_lengths(100), (3, 90)])
    batches = list(evaluation_batches(corpus, 16, append_source_eos=True, words=64))
    sentences = [index for batch in batches for index in batch.sentences.tolist()]
    assert sorted(sentences) == list(range(101)) and len(batches[-1].sentences) == 1
    assert max(len(batch.sentences) for batch in batches) > 4
    for batch in batches[:-1]:
        assert len(batch.sentences) * batch.target_length.max() <= 64
