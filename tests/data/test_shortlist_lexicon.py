"""The lexicon of shortlists: its lists against loops, the command that learns it, messages."""

from collections import Counter

import numpy as np
import pytest
from helpers import tiny_runs
from helpers.command_line import SPECIALS, command, fails, tree, write_model
from oracles import shortlist as oracle

from tfmann import nmt
from tfmann.config import HParams
from tfmann.data import lexicon, shortlist_lexicon
from tfmann.data.lexicon import Entry
from tfmann.data.subword import BpeSegmenter, WordSegmenter
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import Vocabulary
from tfmann.errors import UserError

SOURCE, TARGET = ([f"{side}{i}" for i in range(12)] for side in "st")


def languages(source=SOURCE, target=TARGET, segmenter=None):
    segmenter = segmenter or WordSegmenter()
    return LanguagePair(
        *(TextEncoder(Vocabulary.from_tokens(t), segmenter) for t in (source, target))
    )


def draw_entries(seed, with_frequent):
    """Lines in any order, some of equal weight, and some with tokens of no vocabulary."""
    stream = np.random.default_rng(seed)
    sources = [*SOURCE, "<unk>", "elsewhere", *(["<s>"] if with_frequent else [])]
    pairs = [(s, t) for s in sources for t in [*TARGET, "<unk>", "</s>", "elsewhere"]]
    chosen = stream.permutation(len(pairs))[: len(pairs) // 2]
    return [Entry(*pairs[i], round(stream.random(), 1)) for i in chosen]


@pytest.mark.parametrize("with_frequent", [True, False])
@pytest.mark.parametrize("first, best", [(0, 3), (4, 1), (2, 0), (50, 50)])
def test_the_lists_of_sentences_equal_the_oracle(tmp_path, with_frequent, first, best):
    entries, pair = draw_entries(first + best, with_frequent), languages()
    lexicon.write(tmp_path / "l", entries)
    lists = shortlist_lexicon.read(tmp_path / "l", pair, first, best)
    tokens = list(pair.target.vocabulary.tokens)
    sizes = set()
    for sentence in ("s3 s4 s3", "s0", "", "nowhere s7", " ".join(SOURCE)):
        source = pair.source.vocabulary.decode(pair.source.encode(sentence))
        for given in ((), (9, 5)):
            expected = oracle.sentence_list(entries, source, tokens, first, best, given)
            actual = lists.of_sentence(pair.source.encode(sentence), given)
            assert actual.tolist() == expected, sentence
            sizes.add(len(expected))
    assert len(sizes) > (first < 50)


def test_learned_weights_are_the_probabilities_of_model_1():
    """Two words that occur together once, and apart once: each is the translation of one."""
    pair = languages()
    text = [("s0 s1", "t0 t1"), ("s0", "t0"), ("s1 s2", "t1 t0 t0"), ("", "t3"), ("s3", "gone")]
    ids = [(pair.source.encode(s), pair.target.encode(t)) for s, t in text]
    log = []
    entries = shortlist_lexicon.learn(ids, pair, 2, 2, log.append)
    assert log == [
        "skipped 2 pairs with a side that is empty or above 100 tokens, unknown ones of the target "
        "not counted"
    ]
    assert [e[:2] for e in entries[:2]] == [("<s>", "t0"), ("<s>", "t1")]
    assert [e.weight for e in entries[:2]] == pytest.approx([4 / 6, 2 / 6])
    by_source = {}
    for entry in entries[2:]:
        by_source.setdefault(entry.source, []).append(entry)
    assert list(by_source) == ["s0", "s1", "s2"]
    for rows in by_source.values():
        weights = [row.weight for row in rows]
        assert weights == sorted(weights, reverse=True)
        assert sum(weights) == pytest.approx(1.0), "t(.|s), of which there are two"
    assert by_source["s0"][0].target == "t0" and by_source["s1"][0].target == "t1"
    with pytest.raises(UserError, match="no sentence pair"):
        shortlist_lexicon.learn([([], [3])], pair, 2, 2)


def test_special_target_tokens_take_no_place_among_the_best(tmp_path):
    (tmp_path / "l").write_text("s1 <unk> 0.9\ns1 </s> 0.8\ns1 t5 0.1\n")
    lists = shortlist_lexicon.read(tmp_path / "l", languages(), 0, 1)
    assert lists.of_sentence([4]).tolist() == [0, 1, 2, 8]


def test_of_equal_pairs_the_line_with_the_greatest_weight_counts_and_takes_one_place(tmp_path):
    (tmp_path / "l").write_text(
        "s0 t0 .01\ns0 t0 .9\ns0 t0 .02\ns0 t1 .1\ns0 t2 .05\n"
        "<s> t3 .2\n<s> t3 .1\n<s> t4 .1\n<s> t3 .3\n"
    )
    lists = shortlist_lexicon.read(tmp_path / "l", languages(), 2, 2)
    assert lists.of_source(3).tolist() == [3, 4] and lists.always.tolist() == [0, 1, 2, 6, 7]
    assert not len(lists.of_source(1)), "<s> is no source token: its lines have the frequent words"


@pytest.mark.parametrize("text", ["", "t1 s1 0.5\n", "s1 </s> 0.5\n", "<s> t1 1\n"])
def test_a_lexicon_of_other_words_is_refused_once(tmp_path, text):
    (tmp_path / "l").write_text(text)
    with pytest.raises(UserError, match=r"l: no line has .*such as 's0 t0 0.5'"):
        shortlist_lexicon.read(tmp_path / "l", languages(), 3, 3)


def test_a_bad_line_is_named(tmp_path):
    (tmp_path / "l").write_text("s1 t1 0.5\ns1 t1\n")
    with pytest.raises(UserError, match="l, line 2: 's1 t1' is no line of a lexicon"):
        shortlist_lexicon.read(tmp_path / "l", languages(), 3, 3)


def test_subwords_that_both_sides_share(tmp_path):
    pair = languages(["x@@", "y", "z"], ["x@@", "y", "z"], BpeSegmenter())
    ids = [(pair.source.encode(s), pair.target.encode(t)) for s, t in (("x@@ y", "z"), ("z", "y"))]
    lexicon.write(tmp_path / "l", shortlist_lexicon.learn(ids, pair, 0, 5))
    lists = shortlist_lexicon.read(tmp_path / "l", pair, 0, 5)
    assert lists.of_sentence(pair.source.encode("x@@ y")).tolist() == [0, 1, 2, 5]
    assert lists.of_sentence(pair.source.encode("z")).tolist() == [0, 1, 2, 4]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_runs.corpus(tmp_path_factory.mktemp("data"), 200)


def write_run(folder, data):
    """A run with the vocabularies of a corpus, of which no weights are read."""
    for side in ("src", "tgt"):
        counts = Counter((data / f"train.{side}").read_text().split())
        tokens = [word for word, _ in counts.most_common(60)]
        (folder / f"vocab.{side}").write_text(SPECIALS + "\n".join(tokens) + "\n")
    return folder


def test_the_command_learns_what_the_run_reads(data, tmp_path, capsys):
    out = write_run(tmp_path, data)
    argv = command(out, mode="shortlist", src="src", tgt="tgt", train_prefix=data / "train")
    assert nmt.main([*argv, "--shortlist_first=7", "--shortlist_best=4"]) == 0
    path = out / "shortlist.txt"
    assert capsys.readouterr().out.startswith(f"{path}: ")
    entries = list(lexicon.iter_entries(path))
    counts = Counter(entry.source for entry in entries)
    assert counts.pop("<s>") == 7 and max(counts.values()) == 4
    tokens = {s: set((out / f"vocab.{s}").read_text().split()) for s in ("src", "tgt")}
    assert {entry.source for entry in entries} <= tokens["src"]
    assert {entry.target for entry in entries} <= tokens["tgt"] - {"<unk>", "<s>", "</s>"}
    frequent = Counter((data / "train.tgt").read_text().split()).most_common(1)[0][0]
    assert entries[0].target == frequent
    assert nmt.main([*argv, f"--shortlist={tmp_path / 'other'}"]) == 0
    assert len((tmp_path / "other").read_text()) > len(path.read_text())


@pytest.mark.parametrize(
    "changes, status, words",
    [
        ({"train_prefix": "absent"}, 1, "no such file: .*absent.src"),
        ({"train_prefix": None}, 2, "train_prefix is not given"),
        ({"shortlist_best": -1}, 2, "shortlist_best: -1 is below"),
        ({"shortlist": "absent/lexicon"}, 1, "there is no folder .*absent"),
        ({"export_dir": "x"}, 2, "--mode=shortlist does not use --export_dir"),
    ],
)
def test_what_the_command_refuses(data, tmp_path, capsys, monkeypatch, changes, status, words):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path, data)
    before = tree(tmp_path)
    usual = {"src": "src", "tgt": "tgt", "train_prefix": data / "train"}
    settings = {k: v for k, v in {**usual, **changes}.items() if v is not None}
    fails(command(tmp_path, mode="shortlist", **settings), capsys, status, words)
    assert tree(tmp_path) == before


def test_a_run_without_vocabularies_has_no_tokens(data, tmp_path, capsys):
    argv = command(tmp_path, mode="shortlist", src="src", tgt="tgt", train_prefix=data / "train")
    fails(argv, capsys, 1, "vocab.src")


def test_the_file_must_be_there(tmp_path, capsys):
    lexicon.require(HParams(), str(tmp_path))
    with pytest.raises(UserError, match="no file none: `tfmann shortlist --out_dir=runs/a` learns"):
        lexicon.require(HParams(shortlist="none"), "runs/a")
    (tmp_path / "in").write_text("hund\n")
    folder = write_model(tmp_path / "run") if (tmp_path / "run").mkdir() is None else None
    argv = command(folder, inference_input_file=tmp_path / "in", shortlist=tmp_path / "none")
    fails(argv, capsys, 1, "shortlist: there is no file .*none: `tfmann shortlist --out_dir=")


def test_words_without_a_vocabulary_get_the_same_probabilities():
    pair = languages()
    text = [("s0 s1", "t0 t1"), ("s0", "t0"), ("s1 s2", "t1 t0 t0"), ("", "t3")]
    ids = [(pair.source.encode(s), pair.target.encode(t)) for s, t in text]
    expected = [e for e in shortlist_lexicon.learn(ids, pair, 2, 2) if e.source != "<s>"]
    words = [(s.split(), t.split()) for s, t in text]
    learned = shortlist_lexicon.learn_words(words, 2)
    assert [e[:2] for e in learned] == [e[:2] for e in expected]
    assert [e.weight for e in learned] == pytest.approx([e.weight for e in expected])
