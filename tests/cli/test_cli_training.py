"""The command line that trains: on what it does not begin, and what it leaves when it fails."""

import gzip
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import SPECIALS, WORDS, command, fails, tree

from tfmann import config, nmt
from tfmann.data import run_vocabularies, subword, subword_learning, text_files
from tfmann.data.vocab import Vocabulary
from tfmann.training import checkpoint, checkpoint_series

pytestmark = pytest.mark.usefixtures("untraced_module")


def write_corpus(folder):
    """A corpus of 12 invented pairs, and broken copies of its parts."""
    stream = np.random.default_rng(1)
    source = [" ".join(stream.choice(WORDS, stream.integers(1, 6))) for _ in range(12)]
    target = [" ".join(reversed(line.split())).upper() for line in source]
    for name, suffixes in {"train": ("",), "dev": ("0", "1"), "test": ("",)}.items():
        text_files.write_lines(folder / f"{name}.src", source)
        for suffix in suffixes:
            text_files.write_lines(folder / f"{name}.tgt{suffix}", target)

    def pair(name, source_bytes, target_bytes):
        (folder / f"{name}.src").write_bytes(source_bytes)
        (folder / f"{name}.tgt").write_bytes(target_bytes)

    pair("unequal", b"a b\nc\n", b"x\n")
    pair("empty", b"", b"")
    pair("blank", b"a b\nc\n", b"\n \n")
    pair("latin", b"a b\nc\n", b"x\n\xe9t\xe9\n")
    pair("vocab_plain", b"der\nhund\n", SPECIALS.encode())
    pair("vocab_half", SPECIALS.encode() + b"der\n", b"<unk>\nDER\n")
    pair("gzip", gzip.compress(b"a b\nc\n"), b"x\ny\n")
    pair("two", b"a b\nc\n", b"x\ny\n")
    (folder / "two.tgt").rename(folder / "two.tgt0")
    (folder / "two.tgt1").write_bytes(b"x\n")
    pair("documents", b"a b\nc\n", b"x y\nz\n")
    (folder / "documents.docs").write_bytes(b"1\n")
    pair("vectors", b"der 1 2 3 4\n", b"2 3\nDER 1 2 3\n")
    (folder / "is_a_file").write_bytes(b"")


TRAINING = {
    "src": "src", "tgt": "tgt", "num_units": 4, "num_layers": 1, "batch_size": 4,
    "num_train_steps": 2, "steps_per_stats": 1, "steps_per_external_eval": 2,
    "tgt_max_len_infer": 4, "infer_mode": "greedy", "num_attention_images": 0,
}  # fmt: skip


def training(corpus, out, *flags, **changes):
    prefixes = {f"{name}_prefix": corpus / name for name in ("train", "dev", "test")}
    settings = {**TRAINING, **prefixes, **changes}
    return command(out, *flags, **{k: v for k, v in settings.items() if v is not None})


# what is wrong, the settings that are (with {} for the corpus), status, words of the message
BROKEN = [
    ("no source suffix", {"src": None}, 2, "src is not given"),
    ("one suffix twice", {"tgt": "src"}, 2, "src and tgt are both 'src'"),
    ("no training text", {"train_prefix": None}, 2, "train_prefix is not given"),
    ("no dev text", {"dev_prefix": None}, 2, "dev_prefix is not given"),
    ("missing train", {"train_prefix": "{}/absent"}, 1, r"such file.*/absent\.src \(train_prefix"),
    ("missing dev", {"dev_prefix": "{}/absent"}, 1, r"neither .*t\.tgt nor .*t\.tgt0 \(dev_prefix"),
    ("missing test", {"test_prefix": "{}/absent"}, 1, r"neither .*/absent\.tgt nor"),
    (
        "missing vocabulary",
        {"vocab_prefix": "{}/absent"},
        1,
        r"no such file: .*/absent\.src \(vocab_prefix=.*; without it",
    ),
    ("unequal", {"train_prefix": "{}/unequal"}, 1, r"unequal\.src has 2, .*unequal\.tgt has 1"),
    ("unequal dev", {"dev_prefix": "{}/unequal"}, 1, "unequal line counts"),
    ("unequal test", {"test_prefix": "{}/unequal"}, 1, "unequal line counts"),
    ("unequal documents of test", {"test_prefix": "{}/documents"}, 1, r"documents\.docs has 1"),
    ("unequal references", {"test_prefix": "{}/two"}, 1, r"two\.src has 2, .*two\.tgt1 has 1"),
    ("not UTF-8 test", {"test_prefix": "{}/latin"}, 1, r"latin\.tgt, line 2: not UTF-8"),
    ("empty", {"train_prefix": "{}/empty"}, 1, r"empty\.src and .*empty\.tgt are empty"),
    ("empty dev", {"dev_prefix": "{}/empty"}, 1, "there is no sentence pair"),
    ("blank", {"train_prefix": "{}/blank"}, 1, r"blank\.tgt: no token .*: the text is blank"),
    (
        "blank, with a vocabulary",
        {"train_prefix": "{}/blank", "vocab_prefix": "{}/vocab_good"},
        1,
        "no training pair is left: 2 pairs; 2 with an empty side",
    ),
    ("not UTF-8", {"train_prefix": "{}/latin"}, 1, r"latin\.tgt, line 2: not UTF-8"),
    ("documents", {"train_prefix": "{}/documents"}, 1, r"documents\.docs has 1"),
    ("no specials", {"vocab_prefix": "{}/vocab_plain"}, 1, r"vocab_plain\.src lacks <unk>"),
    ("few specials", {"vocab_prefix": "{}/vocab_half"}, 1, r"vocab_half\.tgt lacks <s>, </s>"),
    ("tiny vocabulary", {"vocab_size": 3}, 1, r"train\.src: no token is left.*vocab_size=3"),
    (
        "all too long",
        {"max_len_policy": "filter", "src_max_len": 1, "train_prefix": "{}/long"},
        1,
        "no training pair is left",
    ),
    ("codes for words", {"subword_model": "{}/train.src"}, 2, "needs subword_option"),
    (
        "missing codes",
        {"subword_option": "bpe", "subword_model": "{}/absent"},
        1,
        r"no such file: .*absent \(subword_model=",
    ),
    ("nothing to start from", {"init_checkpoint": "{}/absent"}, 1, "absent: there is no checkpoi"),
    ("no vectors", {"embed_prefix": "{}/absent"}, 1, r"neither .*absent\.src nor .*absent\.tgt"),
    ("wide vectors", {"embed_prefix": "{}/vectors"}, 1, r"vectors\.src has vectors of 4 numbers"),
    (
        "two starts",
        {"embed_prefix": "{}/vectors", "init_checkpoint": "{}/absent"},
        2,
        "leave one of them out",
    ),
    ("a cell without memory", {"encoder_type": "memory"}, 2, "'luong' cannot: it needs an encoder"),
    ("rate of 0", {"decay_scheme": "cosine", "decay_steps": 1}, 2, "of 0 after decay_steps=1"),
    ("gzip", {"train_prefix": "{}/gzip"}, 1, r"gzip\.src is compressed by gzip: decompress it"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    for side, words in (("src", WORDS), ("tgt", [word.upper() for word in WORDS])):
        Vocabulary.from_tokens(words).save(folder / f"vocab_good.{side}")
        text_files.write_lines(folder / f"long.{side}", ["der hund"])
    return folder


def broken_settings(corpus, changes):
    return {
        key: value.format(corpus) if isinstance(value, str) else value
        for key, value in changes.items()
    }


@pytest.mark.parametrize("changes, status, words", [case[1:] for case in BROKEN],
                         ids=[case[0] for case in BROKEN])  # fmt: skip
def test_training_that_cannot_begin(corpus, tmp_path, capsys, changes, status, words):
    before = tree(corpus)
    out = tmp_path / "out"
    argv = training(corpus, out, num_units=7, **broken_settings(corpus, changes))
    fails(argv, capsys, status, words)
    assert tree(corpus) == before
    left = {name for name in tree(out) if not name.endswith(("train.log", "lock"))}
    allowed = ("checkpoints", "encoded")
    assert all(Path(name).relative_to(out).parts[0] in allowed for name in left), left
    config.settings_for_training(str(out), None, {"num_units": 5, "cell": "rnnsearch"})


@pytest.mark.parametrize("name", ["is_a_file", "is_a_file/below"])
def test_an_out_dir_that_cannot_be_used(corpus, capsys, name):
    before = tree(corpus)
    fails(training(corpus, corpus / name), capsys, 1, f"out_dir .*{name} cannot be used")
    assert tree(corpus) == before


def test_a_vocabulary_of_somebody_else_is_not_replaced(corpus, tmp_path, capsys):
    (tmp_path / "vocab.tgt").write_text("</s>\n<s>\n<unk>\nDER\n")
    fails(training(corpus, tmp_path), capsys, 1, r"vocab\.tgt belongs to no run")
    assert (tmp_path / "vocab.tgt").read_text() == "</s>\n<s>\n<unk>\nDER\n"
    assert not (tmp_path / "vocab.src").exists() and not (tmp_path / "hparams.json").exists()


def test_a_second_process_is_kept_out(corpus, tmp_path, capsys):
    from tfmann.utils.run_folder import RunFolder

    with RunFolder(str(tmp_path / "out"), print):
        fails(training(corpus, tmp_path / "out"), capsys, 1, "another process is training in")


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    """A model trained in a folder in which every command of BROKEN had failed before."""
    out = tmp_path_factory.mktemp("trained") / "out"
    for _, changes, status, _ in BROKEN:
        wrong = broken_settings(corpus, {"num_units": 7, "cell": "ntm_attention", **changes})
        assert nmt.main(training(corpus, out, **wrong)) == status
    assert nmt.main(training(corpus, out)) == 0
    return out


def test_the_corrected_command_works_after_every_failure(trained, corpus):
    saved = config.read_json(trained / "hparams.json")
    assert (saved["num_units"], saved["cell"]) == (4, "luong")
    assert saved["vocab_prefix"] is None and saved["train_prefix"] == str(corpus / "train")
    for side in ("src", "tgt"):
        words = (corpus / f"train.{side}").read_text(encoding="utf-8").split()
        assert set(Vocabulary.load(trained / f"vocab.{side}").tokens[3:]) == set(words)
    results = json.loads((trained / "results.json").read_text())
    assert results["steps"] == 2 and results["hparams"] == saved
    assert checkpoint_series.steps(str(trained / "checkpoints")) == [2]
    references = {name: scores[0]["signature"] for name, scores in results["best"].items()}
    assert "nrefs:2" in references["dev"] and "nrefs:1" in references["test"]


@pytest.mark.parametrize(
    "changes, status, words",
    [
        ({"num_units": 5}, 2, r"num_units=5 \(saved: 4\)"),
        ({"cell": "rnnsearch", "num_layers": 2}, 2, "cell='rnnsearch'.*num_layers=2"),
        ({"vocab_size": 5}, 2, r"vocab_size=5 \(saved: 0\)"),
        ({"vocab_prefix": "{}/vocab_good"}, 2, r"vocab_prefix='.*vocab_good' \(saved: None\)"),
        ({"optimizer": "adam"}, 1, "optimizer='adam'.* start a new run .*--init_checkpoint=.*02$"),
        ({"init_checkpoint": "{}/base"}, 2, "--init_checkpoint has no effect: .* has weights"),
        ({"embed_prefix": "{}/vectors"}, 2, "--embed_prefix has no effect"),
        ({"init_op": "normal"}, 2, "--init_op has no effect"),
        ({"decay_scheme": "cosine", "decay_steps": 2, "num_train_steps": 3}, 2, "at a rate of 0"),
        ({"train_prefix": "{}/unequal"}, 1, "unequal line counts"),
        ({"dev_prefix": "{}/latin"}, 1, "not UTF-8"),
    ],
)
def test_a_trained_model_stays_as_it_is(trained, corpus, capsys, changes, status, words):
    before = tree(corpus, trained)
    fails(training(corpus, trained, **broken_settings(corpus, changes)), capsys, status, words)
    after = tree(corpus, trained)
    log = str(trained / "train.log")
    assert {name for name in before | after if before.get(name) != after.get(name)} <= {log}


def test_the_same_vocabulary_from_elsewhere_is_no_other_model(trained, corpus, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(trained, out)
    for side in ("src", "tgt"):
        shutil.copy(trained / f"vocab.{side}", tmp_path / f"copy.{side}")
    argv = training(corpus, out, vocab_prefix=tmp_path / "copy")
    assert nmt.main(argv) == 0
    saved = config.read_json(out / "hparams.json")
    assert saved["vocab_prefix"] == str(tmp_path / "copy")


def test_weights_that_have_learned_other_words_start_no_model(trained, corpus, tmp_path, capsys):
    """As many words, so that all shapes are the same."""
    for side in ("src", "tgt"):
        text = (corpus / f"train.{side}").read_text(encoding="utf-8")
        other = [" ".join(f"{word}x" for word in line.split()) for line in text.splitlines()]
        text_files.write_lines(tmp_path / f"other.{side}", other)
    settings = {"train_prefix": tmp_path / "other", "num_train_steps": 1}
    for start in (trained, trained / "best_bleu", trained / "checkpoints" / "step-00000002"):
        argv = training(corpus, tmp_path / "out", **settings, init_checkpoint=start)
        words = rf"init_checkpoint={start} has learned other words, those of {trained}/vocab\.src: "
        fails(argv, capsys, 1, f"{words}give --vocab_prefix={trained}/vocab,")
    assert nmt.main([*argv, f"--vocab_prefix={trained}/vocab"]) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    first = checkpoint.weights_sha256(str(trained / "checkpoints" / "step-00000002"))
    best = checkpoint.weights_sha256(str(tmp_path / "out" / "best_bleu"))
    assert (results["init_sha256"], results["weights_sha256"]) == (first, best) and first != best


def test_the_words_of_another_run_come_with_its_subwords(trained, corpus, tmp_path, capsys):
    """With its vocabulary alone, nearly all tokens would be unknown, and the run would train."""
    subword_learning.learn_bpe([corpus / "train.src", corpus / "train.tgt"], tmp_path / "codes", 8)
    bpe = {"subword_option": "bpe", "subword_model": tmp_path / "codes", "num_train_steps": 1}
    units = tmp_path / "units"
    assert nmt.main(training(corpus, units, **bpe)) == 0
    for start, changes in ((trained, bpe), (units, {"num_train_steps": 1})):
        out = tmp_path / f"from-{start.name}"
        argv = training(corpus, out, **changes, init_checkpoint=start)
        fails(argv, capsys, 1, f"has learned other words, .*: give --vocab_prefix={start}/vocab ")
        nmt.main(argv)
        flags = capsys.readouterr().err.partition(": give ")[2].partition(", so that")[0]
        assert nmt.main([*argv, *flags.split()]) == 0
        assert "unknown: 0.00% of" in capsys.readouterr().out
        expected = config.read_json(start / "hparams.json").get("subword_option", "")
        assert config.read_json(out / "hparams.json").get("subword_option", "") == expected


@pytest.mark.quick("False")
@pytest.mark.parametrize("share_vocab", [False, True])
def test_embeddings_start_from_word_vectors(corpus, tmp_path, share_vocab):
    """At a learning rate of 0; what a continued run has learned is not replaced."""
    settings = {"learning_rate": 0.0, "share_vocab": share_vocab, "avg_ckpts": False}
    plain, out, vectors = (tmp_path / name for name in ("plain", "out", "vectors"))
    assert nmt.main(training(corpus, plain, **settings)) == 0
    text_files.write_lines(f"{vectors}.src", [f"{WORDS[0]} 1 2 3 4", f"{WORDS[1]} 5 6 7 8"])
    text_files.write_lines(f"{vectors}.tgt", [f"{WORDS[0].upper()} -1 -2 -3 -4"])
    argv = training(corpus, out, **settings, embed_prefix=vectors)
    assert nmt.main(argv) == 0
    expected, started = (checkpoint.read_arrays(str(run / "best_bleu")) for run in (plain, out))
    for side, words in (("src", WORDS[:2]), ("tgt", [WORDS[0].upper()])):
        vocabulary = Vocabulary.load(out / f"vocab.{side}")
        full_side = {"src": "source", "tgt": "target"}[side]
        name = "model/embedding" if share_vocab else f"model/{full_side}_embedding"
        rows = [[1, 2, 3, 4], [5, 6, 7, 8]] if side == "src" else [[-1, -2, -3, -4]]
        expected[name][vocabulary.encode(words)] = rows
        line = f"{vectors}.{side}: vectors for {len(words)} of {len(vocabulary)} {full_side} words"
        assert line in (out / "train.log").read_text()
    for name, array in expected.items():
        assert np.array_equal(started[name], array), name
    more = training(corpus, out, **settings, embed_prefix=corpus / "absent", num_train_steps=4)
    assert nmt.main(more) == 0


def test_text_that_a_run_continues_on_may_not_change_later(trained, corpus, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(trained, out)
    for side in ("src", "tgt"):
        shutil.copy(corpus / f"train.{side}", tmp_path / f"moved.{side}")
    argv = training(corpus, out, train_prefix=tmp_path / "moved")
    assert nmt.main(argv) == 0
    with open(tmp_path / "moved.src", "ab") as stream:
        stream.write(b"x\n")
    with open(tmp_path / "moved.tgt", "ab") as stream:
        stream.write(b"y\n")
    fails(argv, capsys, 1, r"moved\.src \(train_prefix\) has changed since the run")


def test_a_file_may_say_how_weights_would_start(trained, tmp_path):
    """A run that has weights keeps what it has saved, which is how they did."""
    (tmp_path / "h.json").write_text('{"init_op": "normal", "dropout": 0.5}')
    merged = config.settings_for_training(str(trained), str(tmp_path / "h.json"), {})
    assert (merged.init_op, merged.dropout) == ("uniform", 0.5)


def test_settings_of_a_trained_model_need_not_be_given_again(trained, corpus):
    saved = config.read_json(trained / "hparams.json")
    merged = config.settings_for_training(str(trained), None, {"learning_rate": 0.5})
    assert merged.as_dict() == {**saved, "learning_rate": 0.5}


def test_what_was_not_trained_binds_nobody(trained, corpus, tmp_path):
    """Killed after its settings were written, before its first checkpoint."""
    out = tmp_path / "out"
    (out / "checkpoints" / "step-00000001.tmp77").mkdir(parents=True)
    saved = config.HParams(num_units=9, src="src", tgt="tgt", vocab_size=5)
    config.save(saved, out / "hparams.json")
    (out / "vocab.src").write_text(SPECIALS + "stale\n")
    hparams = config.settings_for_training(str(out), None, {"src": "src", "tgt": "tgt"})
    assert (hparams.num_units, hparams.vocab_size) == (32, 0)
    hparams = hparams.replace(train_prefix=str(corpus / "train"))
    languages = run_vocabularies.load_or_build(hparams, str(out), lambda message: None)
    assert "stale" not in languages.source.vocabulary
    run_vocabularies.save(languages, hparams, str(out))
    assert "stale" not in (out / "vocab.src").read_text(encoding="utf-8")
    assert run_vocabularies.load(hparams, str(out)).source.vocabulary == languages.source.vocabulary


def test_a_word_that_the_terminal_cannot_show_stops_no_training(corpus, tmp_path, monkeypatch):
    """Here in the name of a file that is logged before the text in it is refused."""
    folder = tmp_path / "größe"
    folder.mkdir()
    for side in ("src", "tgt", "docs"):
        (folder / f"t.{side}").write_bytes((corpus / f"documents.{side}").read_bytes())
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    assert nmt.main(training(corpus, tmp_path / "out", train_prefix=folder / "t")) == 1
    stdout.flush()
    assert b"encoding " in stdout.buffer.getvalue() and b"gr\\xf6\\xdfe" in stdout.buffer.getvalue()
    assert "größe" in (tmp_path / "out" / "train.log").read_text(encoding="utf-8")


def test_two_corpora_are_trained_by_their_weights(corpus, tmp_path, capsys):
    text_files.write_lines(corpus / "more.src", ["neu"] * 4)
    text_files.write_lines(corpus / "more.tgt", ["NEW"] * 4)
    prefixes = f"{corpus / 'train'},{corpus / 'more'}"
    run = training(corpus, tmp_path / "run", train_prefix=prefixes, train_weights="1,3")
    assert nmt.main(run) == 0
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert "16 pairs" in log and "more.src" in log
    assert "neu" in (tmp_path / "run" / "vocab.src").read_text(encoding="utf-8").split()
    text_files.write_lines(corpus / "more.src", ["alt"] * 4)
    fails(run, capsys, 1, "more.src .train_prefix. has changed")
    argv = training(corpus, tmp_path / "none", train_prefix=prefixes)
    fails(argv, capsys, 1, "several corpora need train_weights")
    argv = training(corpus, tmp_path / "none", train_prefix=prefixes, train_weights="1")
    fails(argv, capsys, 2, "give one weight for each")
    # a run keeps its weights until it is told to have none
    single = training(corpus, tmp_path / "run")
    fails(single, capsys, 2, "to train on a single corpus, --train_weights=")
    assert nmt.main([*single, "--train_weights="]) == 0


@pytest.mark.thorough
def test_a_run_with_bpe_dropout_resumes_as_if_it_had_not_stopped(corpus, tmp_path, capsys):
    subword_learning.learn_bpe([corpus / "train.src", corpus / "train.tgt"], tmp_path / "codes", 8)
    words = " ".join(WORDS) + " " + " ".join(WORDS).upper()
    usual = subword.BpeSegmenter(tmp_path / "codes").segment(words)
    letters = sorted({*words} - {" "})
    units = dict.fromkeys([*letters, *(f"{letter}@@" for letter in letters), *usual])
    for side in ("src", "tgt"):
        Vocabulary.from_tokens(units).save(tmp_path / f"units.{side}")
    settings = {
        "subword_option": "bpe", "subword_model": tmp_path / "codes", "bpe_dropout": 0.5,
        "vocab_prefix": tmp_path / "units",
    }  # fmt: skip
    weights = {}
    for name, steps in {"whole": [4], "parts": [2, 4], "plain": [4]}.items():
        changes = {**settings, "bpe_dropout": 0.0} if name == "plain" else settings
        for count in steps:
            argv = training(corpus, tmp_path / name, num_train_steps=count, **changes)
            assert nmt.main(argv) == 0
        weights[name] = checkpoint.read_arrays(
            str(tmp_path / name / "checkpoints" / "step-00000004")
        )

    def are_equal(name, other):
        return all(np.array_equal(weights[name][key], weights[other][key]) for key in weights[name])

    assert are_equal("whole", "parts") and not are_equal("whole", "plain")
    argv = training(corpus, tmp_path / "words", bpe_dropout=0.1)
    fails(argv, capsys, 2, "bpe_dropout=0.1 .* needs subword_option='bpe'")
