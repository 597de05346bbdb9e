"""BPE dropout: the algorithm by hand, the words it keeps, and batches that can be resumed."""

import itertools
import random
from collections import Counter
from functools import partial

import pytest
from helpers.batches import are_same

from tfmann.config import HParams
from tfmann.data import encoded_corpus
from tfmann.data.batching import Position, Share, TrainingBatches
from tfmann.data.bpe_dropout import BpeDropout, segment_with_dropout
from tfmann.data.document_batches import DocumentBatches
from tfmann.data.joined_corpus import JoinedCorpus
from tfmann.data.subword import BpeSegmenter
from tfmann.data.subword_learning import learn_bpe
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import UNK_ID, Vocabulary
from tfmann.errors import UsageError

STEMS, ENDS = ["low", "new", "wide", "slow", "great"], ["", "er", "est", "ly", "ness"]
WORDS = [stem + end for stem in STEMS for end in ENDS]
LINES, ROWS = 24, 4


def by_hand(word, merges, end_apart, draws, probability):
    """Algorithm 1 of the paper, one merge at a time over the list of its positions."""
    symbols = [*word, "</w>"] if end_apart else [*word[:-1], word[-1] + "</w>"]
    while True:
        possible = [
            (merges.index((left, right)), i)
            for i, (left, right) in enumerate(itertools.pairwise(symbols))
            if (left, right) in merges and next(draws) >= probability
        ]
        if not possible:
            break
        best = min(possible)[0]
        end = 0
        joined = []
        for i in [i for rank, i in possible if rank == best]:
            if i >= end:
                joined += symbols[end:i] + [symbols[i] + symbols[i + 1]]
                end = i + 2
        symbols = joined + symbols[end:]
    units = [symbol.replace("</w>", "") for symbol in symbols if symbol != "</w>"]
    return [unit + "@@" for unit in units[:-1]] + units[-1:]


def endless(seed):
    stream = random.Random(seed)
    while True:
        yield stream.random()


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """Codes of version 0.2, and the same merges as codes of version 0.1."""
    folder = tmp_path_factory.mktemp("codes")
    stream = random.Random(2)
    text = "\n".join(" ".join(stream.choice(WORDS) for _ in range(7)) for _ in range(200))
    (folder / "text").write_text(text + "\n", encoding="utf-8")
    learn_bpe([folder / "text"], folder / "two", 30)
    merges = (folder / "two").read_text(encoding="utf-8").splitlines()[1:]
    old = ["#version: 0.1", *merges, "r </w>", "e r</w>", "t </w>", "s t</w>"]
    (folder / "one").write_text("\n".join(old) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("version", ["one", "two"])
@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5])
def test_segmentations_are_those_of_the_algorithm(version, probability, codes):
    segmenter = BpeSegmenter(codes / version)
    merges, changed = sorted(segmenter.merges, key=segmenter.merges.get), 0
    for number, word in enumerate([*WORDS, "llll", "a", "chó"]):
        for seed in range(5):
            draws = endless(f"{number} {seed}")
            units = segment_with_dropout(word, segmenter, probability, partial(next, draws))
            draws = endless(f"{number} {seed}")
            assert units == by_hand(word, merges, version == "one", draws, probability)
            assert segmenter.join(units) == word
            changed += units != segmenter.segment(word)
    assert (changed > 0) == (probability > 0), "without dropout it is BPE itself"


@pytest.fixture(scope="module")
def languages(codes):
    segmenter = BpeSegmenter(codes / "two")
    letters = sorted(set("".join(WORDS)))
    units = [*segmenter.segment(" ".join(WORDS)), *letters, *(f"{x}@@" for x in letters)]
    units += [f"{''.join(pair)}@@".replace("</w>@@", "") for pair in segmenter.merges]
    target = TextEncoder(Vocabulary.from_tokens(dict.fromkeys(units)), segmenter)
    few = dict.fromkeys(segmenter.segment(" ".join(WORDS)))  # the usual units alone
    return LanguagePair(TextEncoder(Vocabulary.from_tokens(few), segmenter), target)


@pytest.fixture(scope="module")
def corpus(languages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    stream = random.Random(3)
    for side in ("src", "tgt"):
        lines = [" ".join(stream.choice(WORDS) for _ in range(8)) for _ in range(LINES)]
        lines[2] = "lowest żółw newer"  # unknown letters
        (folder / side).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "docs").write_text("".join(f"{i // 5}\n" for i in range(LINES)))
    paths = (str(folder / name) for name in ("src", "tgt", "docs"))
    return encoded_corpus.encode(languages, *paths, str(folder / "encoded"), lambda _: None)


def test_words_stay_and_the_vocabulary_has_every_unit(languages, corpus):
    dropout = BpeDropout(languages, 0.5, seed=1)
    segmentations = Counter()
    for sentence in range(LINES):
        for encoder, ids, draw in (
            (languages.source, corpus.source(sentence), dropout.source),
            (languages.target, corpus.target(sentence), dropout.target),
        ):
            text = encoder.decode(ids.tolist())
            drawn = [draw(ids, epoch, sentence).tolist() for epoch in range(6)]
            assert {encoder.decode(units) for units in drawn} == {text}
            assert all(units.count(UNK_ID) == list(ids).count(UNK_ID) for units in drawn)
            segmentations[encoder is languages.target] += len({tuple(units) for units in drawn})
            assert drawn[3] == draw(ids, 3, sentence).tolist()
    assert segmentations[True] > 5 * LINES > segmentations[False] > LINES, (
        "too few segmentations, or none is kept"
    )
    cut = corpus.target(0)[:1]
    while not languages.target.vocabulary.decode(cut.tolist())[-1].endswith("@@"):
        cut = corpus.target(0)[: len(cut) + 1]
    end = languages.target.vocabulary.decode(cut.tolist())[-1]
    assert languages.target.vocabulary.decode(dropout.target(cut, 1, 0).tolist())[-1] == end


def batches(kind, languages, corpus, position=Position(), share=Share(), probability=0.3):  # noqa: B008
    h = HParams(batch_size=ROWS, tgt_max_len=30)
    dropout = BpeDropout(languages, probability, 1) if probability else None
    return kind(corpus, h, share=share, dropout=dropout).batches(position)


@pytest.mark.parametrize("kind", [TrainingBatches, DocumentBatches])
def test_batches_are_redrawn_every_epoch_and_continue_from_a_position(kind, languages, corpus):
    whole = list(itertools.islice(batches(kind, languages, corpus), 30))
    begin = 17
    rest = itertools.islice(batches(kind, languages, corpus, whole[begin - 1][1]), 30 - begin)
    assert all(are_same(batch, other) for (batch, _), (other, _) in zip(whole[begin:], rest))
    targets, epoch = {}, 0
    for batch, after in whole:
        for row, sentence in enumerate(batch.sentences):
            if batch.target_length[row]:
                ids = batch.target_out[row, : batch.target_length[row] - 1].tolist()
                targets.setdefault(int(sentence), {})[epoch] = ids
        assert batch.totals[0] == batch.target_length.sum()
        epoch = after.epoch
    assert sum(drawn[0] != drawn[1] for drawn in targets.values()) > LINES // 2
    plain = list(itertools.islice(batches(kind, languages, corpus, probability=0.0), 3))
    none = [batch for batch, _ in plain]
    assert all(
        batch.sentences.tolist() == whole[i][0].sentences.tolist() for i, batch in enumerate(none)
    )


@pytest.mark.parametrize("kind", [TrainingBatches, DocumentBatches])
def test_a_pair_that_comes_again_in_an_epoch_has_other_units(kind, languages, corpus):
    """Of a small corpus with a large weight; also where a run continues within the epoch."""
    few = encoded_corpus.EncodedCorpus(
        corpus.source_ids, corpus.source_starts[:3],
        corpus.target_ids, corpus.target_starts[:3], corpus.documents[:2],
    )  # fmt: skip
    joined = JoinedCorpus([corpus, few])
    h = HParams(batch_size=ROWS, tgt_max_len=30, train_prefix="a,b", train_weights="1,3")
    dropout = BpeDropout(languages, 0.3, 1)
    data = kind(joined, h, dropout=dropout)
    whole, drawn = [], {LINES: [], LINES + 1: []}
    for batch, after in data.batches(Position()):
        whole.append((batch, after))
        for row, sentence in enumerate(batch.sentences.tolist()):
            if batch.target_length[row] and sentence in drawn:
                ids = batch.target_out[row, : batch.target_length[row]]
                drawn[sentence].append(tuple(ids.tolist()))
        assert batch.totals[0] == batch.target_length.sum()
        if after.epoch:
            break
    for units in drawn.values():
        assert len(units) > LINES // 3 and len(set(units)) > len(units) // 2
    begin = len(whole) // 2
    rest = kind(joined, h, dropout=dropout).batches(whole[begin - 1][1])
    assert all(are_same(batch, other) for (batch, _), (other, _) in zip(whole[begin:], rest))


@pytest.mark.parametrize("kind", [TrainingBatches, DocumentBatches])
def test_workers_draw_the_same_units_and_know_all_lengths(kind, languages, corpus):
    whole = batches(kind, languages, corpus)
    parts = [batches(kind, languages, corpus, share=Share(i, 1, 2)) for i in range(2)]
    for (batch, _), *shares in itertools.islice(zip(whole, *parts), 8):
        for index, (part, _) in enumerate(shares):
            assert part.totals.tolist() == batch.totals.tolist()
            lengths = batch.target_length[index::2]
            assert part.target_length.tolist() == lengths.tolist()
            for row, length in enumerate(lengths):
                ids = batch.target_out[index + 2 * row, :length]
                assert part.target_out[row, :length].tolist() == ids.tolist()


@pytest.mark.parametrize(
    "settings",
    [{}, {"subword_option": "bpe"}, {"subword_option": "spm", "subword_model": "pieces"}],
)
def test_dropout_needs_codes(settings):
    with pytest.raises(UsageError, match="bpe_dropout=0.1 .* needs subword_option='bpe'"):
        HParams(bpe_dropout=0.1, **settings)
